// The turns of generating tickets: who is started, whose step is next, what interrupts a batch.
#include <algorithm>
#include <utility>

#include "server/scheduler/scheduler.h"

namespace longview::server {
namespace {

// Started tickets that do not begin their prompts yet reserve memory for nothing: no more than
// these, so that the order in which clients take turns still counts.
constexpr size_t kMaxIdle = 8;

}  // namespace

std::optional<Batch> Scheduler::NextBatch() {
  if (running()) return std::nullopt;
  if (std::optional<Batch> roster = NextRoster()) return roster;
  const Ticket* first = line_.Next();
  const std::optional<ModelId> least = ModelWithLeast();
  if (first != nullptr && !least) return StartBatch(first->model);
  if (!least) return std::nullopt;
  if (first == nullptr) return BeginStep();
  // A layer has to fit before somebody's next token; where layers are too long for that, they get
  // what is left after a step.
  const double layer = std::min(layer_share_ * first->seconds, roster_.Ceiling() / 2);
  const bool their_turn = line_.ModelTime(first->model) <= line_.ModelTime(*least);
  if (their_turn && roster_.Spare(clock_.Now()) >= layer) return StartBatch(first->model);
  return BeginStep();
}

std::optional<Batch> Scheduler::BeginStep() {
  std::optional<Batch> step = PlanStep();
  if (step) return Begin(*std::move(step));
  return std::nullopt;
}

std::optional<ModelId> Scheduler::ModelWithLeast() const {
  std::optional<ModelId> least;
  for (const ModelId model : roster_.Models()) {
    if (!least || line_.ModelTime(model) < line_.ModelTime(*least)) least = model;
  }
  return least;
}

Batch Scheduler::FullStep(ModelId model) {
  const bool batches = batch_ || line_.Next() != nullptr;
  const double contenders = static_cast<double>(roster_.Models().size()) + (batches ? 1 : 0);
  return roster_.PlanFull(model, clock_.Now(), 1 / contenders,
                          [this](const Ticket& ticket) { return line_.Lead(ticket.client); });
}

std::optional<Batch> Scheduler::PlanStep() {
  const std::optional<ModelId> least = ModelWithLeast();
  if (!least) return std::nullopt;
  const std::optional<ModelId> due = roster_.DueFirst();
  if (!due || roster_.Spare(clock_.Now(), *least) >= 0) {
    Batch step = FullStep(*least);
    if (!step.tickets.empty()) return step;
  }
  // Somebody's token would be late, or no granule fits before it.
  if (due) return roster_.PlanDecode(*due);
  for (const ModelId model : roster_.Models()) {
    Batch step = FullStep(model);
    if (!step.tickets.empty()) return step;
  }
  return std::nullopt;
}

std::optional<Batch> Scheduler::Interrupt(double layer_seconds) {
  longest_layer_ = std::max(longest_layer_, layer_seconds);
  if (std::optional<Batch> roster = NextRoster()) return roster;
  if (roster_.empty()) return std::nullopt;
  const absl::Time now = clock_.Now();
  if (roster_.Spare(now) < layer_seconds) return Begin(roster_.PlanDecode(*roster_.DueFirst()));
  const double had = absl::ToDoubleSeconds(now - batch_start_) - interrupted_;
  if (interrupted_ >= had) return std::nullopt;
  std::optional<Batch> step = PlanStep();
  if (!step) return std::nullopt;
  const absl::Time end = std::max(now, batch_end_) + absl::Seconds(step->seconds);
  if (end > batch_soonest_) return std::nullopt;
  return Begin(*std::move(step));
}

Batch Scheduler::Begin(Batch turn) {
  for (const TicketId id : turn.tickets) entries_.at(id).in_turn = true;
  step_start_ = last_progress_ = clock_.Now();
  step_ = std::move(turn);
  return *step_;
}

bool Scheduler::Fits(const Ticket& ticket) const {
  return options_.memory_bytes <= 0 || reserved_ + held_ + ticket.bytes <= options_.memory_bytes;
}

bool Scheduler::StartsAtOnce(const Ticket& ticket) const {
  if (!ticket.generates()) return false;
  const size_t generating = roster_.size() + line_.generating();
  if (generating >= static_cast<size_t>(options_.max_generating)) return false;
  const double bytes = reserved_ + held_ + line_.generating_bytes() + ticket.bytes;
  return options_.memory_bytes <= 0 || bytes <= options_.memory_bytes;
}

std::optional<Batch> Scheduler::NextRoster() {
  Batch turn;
  turn.kind = TurnKind::kRoster;
  turn.leaving = std::exchange(leaving_, {});
  const absl::Time now = clock_.Now();
  size_t idle = roster_.waiting();
  size_t members = roster_.size();
  if (std::exchange(joins_changed_, false)) {
    line_.Offer([&](const Ticket& ticket) {
      if (idle >= kMaxIdle || members >= static_cast<size_t>(options_.max_generating)) {
        return WaitingLine::Reply::kStop;
      }
      if (!Fits(ticket)) {
        const bool patient = line_.Urgency(ticket.id) <= now;
        return patient ? WaitingLine::Reply::kStop : WaitingLine::Reply::kPass;
      }
      ++idle;
      ++members;
      reserved_ += ticket.bytes;
      Start(ticket);
      turn.tickets.push_back(ticket.id);
      joining_.emplace(ticket.id, ticket);
      return WaitingLine::Reply::kTake;
    });
  }
  if (turn.tickets.empty() && turn.leaving.empty()) return std::nullopt;
  return Begin(std::move(turn));
}

void Scheduler::EndGenerating(TicketId id) {
  const auto joining = joining_.find(id);
  const Ticket ticket = joining == joining_.end() ? roster_.Remove(id) : std::move(joining->second);
  if (joining != joining_.end()) joining_.erase(joining);
  line_.Leave(ticket);
  reserved_ -= ticket.bytes;
  const auto it = entries_.find(id);
  const Entry& entry = it->second;
  if (entry.stage == Stage::kRunning) deadlines_.erase({entry.deadline, id});
  Count(entry.model, entry.stage, 0, -1);
  entries_.erase(it);
  if (roster_.empty() && joining_.empty()) reserved_ = 0;
}

void Scheduler::Finish(std::span<const StepOutcome> outcomes) {
  const absl::Time now = clock_.Now();
  const double seconds = absl::ToDoubleSeconds(now - step_start_);
  const Batch turn = *std::exchange(step_, std::nullopt);
  if (turn.kind == TurnKind::kStep) {
    const std::vector<double> parts = roster_.Split(turn, seconds);
    for (size_t i = 0; i < parts.size(); ++i) {
      line_.Charge(*roster_.Find(turn.tickets[i]), parts[i]);
    }
  }
  for (const StepOutcome& outcome : outcomes) {
    if (outcome.hold != 0) Hold(outcome.hold, outcome.hold_bytes);
    if (outcome.done) {
      EndGenerating(outcome.id);
      continue;
    }
    Entry& entry = entries_.at(outcome.id);
    entry.in_turn = false;
    if (entry.stage == Stage::kDropped) leaving_.push_back(outcome.id);
    if (const auto joining = joining_.find(outcome.id); joining != joining_.end()) {
      const absl::Time urgency = std::min(entry.deadline, now + options_.patience);
      roster_.Add(joining->second, outcome.need, urgency, now);
      joining_.erase(joining);
    } else {
      roster_.Update(outcome.id, outcome.need);
    }
  }
  step_drops_.clear();
  joins_changed_ = true;
  if (turn.kind == TurnKind::kStep) roster_.Stepped(turn.model, now);
  if (batch_) {
    batch_end_ += now - step_start_;
    interrupted_ += seconds;
  }
  last_progress_ = now;
}

void Scheduler::Hold(uint64_t key, double bytes) {
  double& held = holds_[key];
  const bool grown = bytes > held;
  held_ += bytes - held;
  held = bytes;
  if (bytes == 0) holds_.erase(key);
  if (holds_.empty()) held_ = 0;
  joins_changed_ = true;
  if (grown) ReportStarving();
}

void Scheduler::ReportStarving() {
  if (options_.memory_bytes <= 0) return;
  for (const auto& [id, entry] : entries_) {
    if (entry.stage != Stage::kWaiting || !entry.generates) continue;
    if (entry.bytes > options_.memory_bytes - held_) starving_.push_back(id);
  }
  for (const TicketId id : starving_) {
    if (line_.Find(id) != nullptr) RemoveWaiting(id);
  }
}

}  // namespace longview::server
