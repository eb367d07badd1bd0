// The turns of generating tickets: who is started, whose step is next, what interrupts a batch.
#include <algorithm>
#include <utility>

#include "server/scheduler/scheduler.h"

namespace longview::server {

std::optional<Batch> Scheduler::NextBatch(int number) {
  Lane& lane = LaneAt(number);
  lane.yielded = false;
  if (lane.running() || lane.lost) return std::nullopt;
  if (std::optional<Batch> turn = NextMembership(lane)) return turn;
  const Ticket* first = NextFor(lane);
  if (lane.running_set.empty()) {
    if (first == nullptr) return std::nullopt;
    return StartNext(*first, lane);
  }
  if (first == nullptr) return BeginStep(lane);
  // A slice has to fit before somebody's next token; where slices are too long for that, they get
  // what is left after a step.
  const double slice = std::min(lane.longest_slice, lane.running_set.Ceiling() / 2);
  if (std::optional<Batch> step = StepBefore(lane, slice)) return step;
  return StartNext(*first, lane);
}

std::optional<Batch> Scheduler::StepBefore(Lane& lane, double slice_seconds) {
  const absl::Time now = clock_.Now();
  const bool turn_of_batch = lane.stepped && lane.steps_lead >= 0;
  // Another slice goes before each of the other models' steps.
  const double slices = slice_seconds * std::max(1, lane.running_set.Decoding());
  if (!turn_of_batch && lane.steps_lead <= lane.running_set.Ceiling() &&
      lane.running_set.Spare(now) < slices) {
    return Begin(lane.running_set.PlanDecode(*lane.running_set.DueFirst()), lane);
  }
  if (lane.steps_lead > 0 || turn_of_batch) return std::nullopt;
  std::optional<Batch> step = PlanStep(lane);
  if (!step) return std::nullopt;
  for (const RunningBatch& running : lane.batches) {
    const absl::Time end = std::max(now, running.end) + absl::Seconds(step->seconds);
    if (end > running.soonest) return std::nullopt;
  }
  return Begin(*std::move(step), lane);
}

double Scheduler::CeilingOf(const Lane& lane) const {
  const double ceiling = lane.running_set.Ceiling();
  const double slice = lane.Slice();
  if (slice == 0) return ceiling;
  return std::max(ceiling,
                  2 * lane.running_set.RoundSeconds() + lane.running_set.Decoding() * slice);
}

std::optional<Batch> Scheduler::BeginStep(Lane& lane) {
  std::optional<Batch> step = PlanStep(lane);
  if (step) return Begin(*std::move(step), lane);
  return std::nullopt;
}

std::optional<ModelId> Scheduler::ModelWithLeast(const Lane& lane) const {
  std::optional<ModelId> least;
  for (const ModelId model : lane.running_set.Models()) {
    if (!least || queue_.ModelTime(model) < queue_.ModelTime(*least)) least = model;
  }
  return least;
}

Batch Scheduler::FullStep(ModelId model, Lane& lane) {
  const bool batches = !lane.batches.empty() || NextFor(lane) != nullptr;
  const double contenders =
      static_cast<double>(lane.running_set.Models().size()) + (batches ? 1 : 0);
  // The step ends before a slice that goes after it, so that tokens are not late behind that slice.
  const double slice = batches ? std::min(lane.Slice(), lane.running_set.Ceiling() / 2) : 0;
  const absl::Time now = clock_.Now() + absl::Seconds(slice);
  return lane.running_set.PlanFull(model, now, 1 / contenders, [this](const Ticket& ticket) {
    return queue_.Lead(ticket.client);
  });
}

std::optional<Batch> Scheduler::PlanStep(Lane& lane) {
  const std::optional<ModelId> least = ModelWithLeast(lane);
  if (!least) return std::nullopt;
  const std::optional<ModelId> due = lane.running_set.DueFirst();
  if (!due || lane.running_set.Spare(clock_.Now(), *least) >= 0) {
    Batch step = FullStep(*least, lane);
    if (!step.tickets.empty()) return step;
  }
  // Somebody's token would be late, or no chunk of a prompt fits before it.
  if (due) return lane.running_set.PlanDecode(*due);
  for (const ModelId model : lane.running_set.Models()) {
    Batch step = FullStep(model, lane);
    if (!step.tickets.empty()) return step;
  }
  return std::nullopt;
}

std::optional<Batch> Scheduler::Interrupt(double slice_seconds, int number) {
  Lane& lane = LaneAt(number);
  double& longest = lane.batches.back().longest_slice;
  longest = std::max(longest, slice_seconds);
  CountSlice(lane);
  if (std::optional<Batch> turn = NextMembership(lane)) return turn;
  if (!lane.running_set.empty()) {
    if (std::optional<Batch> step = StepBefore(lane, slice_seconds)) return step;
  }
  if (std::optional<Batch> nested = StartNested(lane)) return nested;
  lane.stepped = false;
  return std::nullopt;
}

Batch Scheduler::Begin(Batch turn, Lane& lane) {
  for (const TicketId id : turn.tickets) entries_.at(id).in_turn = true;
  lane.step_start = last_progress_ = clock_.Now();
  lane.step = std::move(turn);
  return *lane.step;
}

std::optional<Batch> Scheduler::NextMembership(Lane& lane) {
  Batch turn;
  turn.kind = TurnKind::kMembership;
  turn.leaving = std::exchange(lane.leaving, {});
  const absl::Time now = clock_.Now();
  size_t idle = lane.running_set.waiting();
  size_t members = lane.running_set.size();
  // With several lanes, whether a ticket starts here also depends on what the others do.
  if (std::exchange(lane.joins_changed, false) || lanes_.size() > 1) {
    queue_.Offer(now, [&](const Ticket& ticket) {
      if (idle >= kMaxIdle || members >= static_cast<size_t>(options_.max_generating)) {
        return WaitingQueue::Reply::kStop;
      }
      if (!MayServe(lane, ticket)) return WaitingQueue::Reply::kSkip;
      if (PromptInFront(lane, ticket)) return WaitingQueue::Reply::kPass;
      if (!Fits(lane, ticket)) {
        const bool patient = queue_.Urgency(ticket.id) <= now && HasMostRoom(lane, ticket);
        return patient ? WaitingQueue::Reply::kStop : WaitingQueue::Reply::kPass;
      }
      if (BetterElsewhere(lane, ticket)) return WaitingQueue::Reply::kPass;
      ++idle;
      ++members;
      lane.reserved += ticket.bytes;
      Start(ticket, lane);
      turn.tickets.push_back(ticket.id);
      lane.joining.emplace(ticket.id, ticket);
      return WaitingQueue::Reply::kTake;
    });
  }
  if (turn.tickets.empty() && turn.leaving.empty()) return std::nullopt;
  return Begin(std::move(turn), lane);
}

void Scheduler::EndGenerating(TicketId id, Lane& lane) {
  const auto joining = lane.joining.find(id);
  const Ticket ticket =
      joining == lane.joining.end() ? lane.running_set.Remove(id) : std::move(joining->second);
  if (joining != lane.joining.end()) lane.joining.erase(joining);
  queue_.Leave(ticket);
  lane.reserved -= ticket.bytes;
  const auto it = entries_.find(id);
  const Entry& entry = it->second;
  if (entry.stage == Stage::kRunning) deadlines_.erase({entry.deadline, id});
  Count(entry.model, entry.stage, 0, -1);
  entries_.erase(it);
  if (lane.running_set.empty() && lane.joining.empty()) lane.reserved = 0;
}

void Scheduler::Finish(std::span<const StepOutcome> outcomes, int number) {
  Lane& lane = LaneAt(number);
  const absl::Time now = clock_.Now();
  const double seconds = absl::ToDoubleSeconds(now - lane.step_start);
  const Batch turn = *std::exchange(lane.step, std::nullopt);
  if (turn.kind == TurnKind::kStep) {
    const std::vector<double> parts = lane.running_set.Split(turn, seconds);
    for (size_t i = 0; i < parts.size(); ++i) {
      queue_.Charge(*lane.running_set.Find(turn.tickets[i]), parts[i]);
    }
  }
  for (const StepOutcome& outcome : outcomes) {
    if (outcome.hold != 0) Hold(outcome.hold, outcome.hold_bytes, number);
    if (outcome.done) {
      EndGenerating(outcome.id, lane);
      continue;
    }
    Entry& entry = entries_.at(outcome.id);
    entry.in_turn = false;
    if (entry.stage == Stage::kDropped) lane.leaving.push_back(outcome.id);
    if (const auto joining = lane.joining.find(outcome.id); joining != lane.joining.end()) {
      const absl::Time urgency = std::min(entry.deadline, now + options_.patience);
      lane.running_set.Add(joining->second, outcome.need, urgency, now);
      lane.joining.erase(joining);
    } else {
      lane.running_set.Update(outcome.id, outcome.need);
    }
  }
  lane.step_drops.clear();
  JoinsChanged();
  if (turn.kind == TurnKind::kStep) lane.running_set.Stepped(turn.model, now);
  for (RunningBatch& running : lane.batches) {
    running.end += now - lane.step_start;
    running.interrupted += seconds;
  }
  if (turn.kind == TurnKind::kStep) CountStep(lane, seconds);
  last_progress_ = now;
}

void Scheduler::Hold(uint64_t key, double bytes, int number) {
  Lane& lane = LaneAt(number);
  double& held = lane.holds[key];
  const bool grown = bytes > held;
  lane.held += bytes - held;
  held = bytes;
  if (bytes == 0) lane.holds.erase(key);
  if (lane.holds.empty()) lane.held = 0;
  JoinsChanged();
  if (!grown || options_.memory_bytes <= 0) return;
  Evict([this](const Ticket& ticket) { return ticket.bytes > RoomBesideDocuments(ticket); },
        /*memory=*/true);
}

}  // namespace longview::server
