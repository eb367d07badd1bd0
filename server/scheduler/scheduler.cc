#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

namespace longview::server {
namespace {

// The index finds tickets strictly before a time; a timer set to their time must fire after.
constexpr absl::Duration kTick = absl::Microseconds(1);
constexpr absl::Duration kMinRetry = absl::Milliseconds(10);
constexpr absl::Duration kMemoryRetry = absl::Seconds(1);

absl::Duration RetryAfter(double seconds) { return std::max(kMinRetry, absl::Seconds(seconds)); }

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      line_(options.slack_seconds, options.patience),
      roster_(options.inter_token_seconds),
      last_progress_(clock.Now()) {}

absl::Time Scheduler::LatestStart(absl::Time deadline, double seconds) {
  return deadline - absl::Seconds(seconds);
}

absl::Time Scheduler::EarliestStart(absl::Time now) const {
  return batch_ && Wanted() ? std::max(now, batch_end_) : now;
}

void Scheduler::Count(ModelId model, Stage stage, double seconds, int sign) {
  QueueGauges& gauges = gauges_[model];
  if (stage == Stage::kRunning || stage == Stage::kDropped) {
    gauges.running_requests += sign;
  } else {
    gauges.queued_requests += sign;
    gauges.queued_seconds += sign * seconds;
  }
  if (gauges.queued_requests == 0) gauges.queued_seconds = 0;
  if (gauges.queued_requests == 0 && gauges.running_requests == 0) gauges_.erase(model);
}

Admission Scheduler::JudgeWithRoom(const Ticket& ticket, double freed) const {
  Admission result;
  const absl::Time now = clock_.Now();
  const double limit = options_.memory_bytes;
  if (limit > 0 && ticket.bytes > limit) {
    return {Verdict::kTooLarge, 0, std::nullopt, ticket.bytes, limit, {}};
  }
  if (limit > 0 && ticket.generates() && ticket.bytes > limit - held_) {
    return {Verdict::kMemoryFull, 0, kMemoryRetry, ticket.bytes, limit - held_, {}};
  }

  const double until_end = absl::ToDoubleSeconds(EarliestStart(now) - now);
  const double until_free = ticket.generates() ? 0 : until_end;
  const double queued = line_.seconds() - freed;
  const double beside = roster_.LeftSeconds() + until_end - until_free;
  const auto wait_for = [&](double ahead) {
    // It shares the device with what it does not wait for: at most half of the time is theirs.
    return ahead + std::min(beside, ahead + ticket.seconds);
  };
  result.wait_seconds = wait_for(until_free + queued);
  if (ticket.deadline != absl::InfiniteFuture()) {
    const double available = absl::ToDoubleSeconds(ticket.deadline - now);
    // The order of turns matters only where not all waiting work fits before the deadline.
    const bool roomy = result.wait_seconds + ticket.seconds <= available;
    if (!roomy) result.wait_seconds = wait_for(until_free + line_.WorkAhead(ticket, now));
    const double need = result.wait_seconds + ticket.seconds;
    if (!roomy && need > available) {
      std::optional<absl::Duration> retry;
      if (ticket.seconds <= available) retry = RetryAfter(need - available);
      return {Verdict::kTooLate, result.wait_seconds, retry, need, std::max(0.0, available), {}};
    }
  }

  const double need = queued + ticket.seconds;
  if (line_.size() > 0 && need > options_.max_queue_seconds && !StartsAtOnce(ticket)) {
    const double over = need - options_.max_queue_seconds;
    return {Verdict::kQueueFull,           result.wait_seconds,
            RetryAfter(until_free + over), need,
            options_.max_queue_seconds,    {}};
  }
  return result;
}

Admission Scheduler::JudgeKnown(const Ticket& ticket) const {
  Admission result = JudgeWithRoom(ticket, 0);
  if (result.verdict != Verdict::kQueueFull) return result;
  const double own = line_.ClientSeconds(ticket.client) + ticket.seconds;
  std::vector<TicketId> displaced =
      line_.Displaceable(ticket.client, result.need - result.limit, own);
  if (displaced.empty()) return result;
  double freed = 0;
  for (const TicketId id : displaced) freed += line_.Find(id)->seconds;
  result = JudgeWithRoom(ticket, freed);
  if (result.verdict == Verdict::kAdmitted) result.displaced = std::move(displaced);
  return result;
}

Admission Scheduler::Judge(const Ticket& ticket) const {
  Admission result = JudgeKnown(ticket);
  result.wait_seconds += expected_.seconds();
  return result;
}

Admission Scheduler::Admit(const Ticket& ticket) {
  if (entries_.contains(ticket.id)) Cancel(ticket.id);
  Admission result = JudgeKnown(ticket);
  if (result.verdict != Verdict::kAdmitted) return result;
  for (const TicketId id : result.displaced) RemoveWaiting(id);

  const absl::Time now = clock_.Now();
  if (!HasWork() && !running()) last_progress_ = now;
  line_.Add(ticket, now);
  entries_.emplace(ticket.id, Entry{Stage::kWaiting, ticket.model, ticket.deadline, ticket.seconds,
                                    ticket.bytes, ticket.generates()});
  if (ticket.deadline != absl::InfiniteFuture()) {
    StartsOf(ticket).insert({LatestStart(ticket.deadline, ticket.seconds), ticket.id});
  }
  if (ticket.generates()) joins_changed_ = true;
  Count(ticket.model, Stage::kWaiting, ticket.seconds, +1);
  return result;
}

void Scheduler::RemoveWaiting(TicketId id) {
  const Ticket ticket = line_.Remove(id);
  StartsOf(ticket).erase({LatestStart(ticket.deadline, ticket.seconds), id});
  Count(ticket.model, Stage::kWaiting, ticket.seconds, -1);
  entries_.erase(id);
  joins_changed_ = true;
}

CancelOutcome Scheduler::Cancel(TicketId id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return CancelOutcome::kUnknown;
  Entry& entry = it->second;
  switch (entry.stage) {
    case Stage::kWaiting:
      RemoveWaiting(id);
      return CancelOutcome::kRemoved;
    case Stage::kExpected:
      deadlines_.erase({entry.deadline, id});
      Count(entry.model, Stage::kExpected, entry.seconds, -1);
      expected_.Remove(id);
      entries_.erase(it);
      return CancelOutcome::kRemoved;
    case Stage::kRunning:
      deadlines_.erase({entry.deadline, id});
      entry.stage = Stage::kDropped;
      if (entry.generates) {
        (entry.in_turn ? step_drops_ : leaving_).push_back(id);
      } else {
        drops_.push_back(id);
        --running_wanted_;
      }
      return CancelOutcome::kRunning;
    case Stage::kDropped:
      break;
  }
  return CancelOutcome::kUnknown;
}

std::vector<Departure> Scheduler::Expire() {
  std::vector<Departure> departures;
  const absl::Time now = clock_.Now();
  while (!deadlines_.empty() && deadlines_.begin()->first < now) {
    const TicketId id = deadlines_.begin()->second;
    departures.push_back({id, Cancel(id) == CancelOutcome::kRunning});
  }
  const absl::Time start = EarliestStart(now);
  while (!latest_starts_.empty() && latest_starts_.begin()->first < start) {
    const TicketId id = latest_starts_.begin()->second;
    RemoveWaiting(id);
    departures.push_back({id, false});
  }
  while (!latest_joins_.empty() && latest_joins_.begin()->first < now) {
    const TicketId id = latest_joins_.begin()->second;
    RemoveWaiting(id);
    departures.push_back({id, false});
  }
  for (const TicketId id : std::exchange(starving_, {})) departures.push_back({id, false, true});
  return departures;
}

absl::Time Scheduler::NextExpiry() const {
  absl::Time next = absl::InfiniteFuture();
  if (!deadlines_.empty()) next = deadlines_.begin()->first + kTick;
  if (!latest_starts_.empty()) {
    const absl::Time latest = latest_starts_.begin()->first;
    const absl::Time now = clock_.Now();
    next = std::min(next, latest < EarliestStart(now) ? now : latest + kTick);
  }
  if (!latest_joins_.empty()) next = std::min(next, latest_joins_.begin()->first + kTick);
  if (!starving_.empty()) next = clock_.Now();
  return next;
}

void Scheduler::Start(const Ticket& ticket) {
  Entry& entry = entries_.at(ticket.id);
  entry.stage = Stage::kRunning;
  StartsOf(ticket).erase({LatestStart(ticket.deadline, ticket.seconds), ticket.id});
  if (ticket.deadline != absl::InfiniteFuture()) deadlines_.insert({ticket.deadline, ticket.id});
  Count(ticket.model, Stage::kWaiting, ticket.seconds, -1);
  Count(ticket.model, Stage::kRunning, 0, +1);
}

Batch Scheduler::StartBatch(ModelId model) {
  const absl::Time now = clock_.Now();
  batch_.emplace().model = model;
  // Steps that go between its layers take as long as it does, at most.
  const double stretch = roster_.empty() ? 1 : 2;
  double bytes = 0;
  absl::Time soonest = absl::InfiniteFuture();
  line_.Serve(model, [&](const Ticket& ticket) {
    const int items = static_cast<int>(batch_->tickets.size());
    if (items > 0) {
      if (items == options_.max_batch_items || batch_->seconds >= options_.batch_seconds) {
        return WaitingLine::Reply::kStop;
      }
      const double seconds = batch_->seconds + ticket.seconds;
      const absl::Time end = now + absl::Seconds(stretch * seconds);
      const bool in_time = end <= std::min(soonest, ticket.deadline);
      const bool fits = options_.memory_bytes <= 0 || bytes + ticket.bytes <= options_.memory_bytes;
      if (seconds > options_.batch_seconds || !in_time || !fits) {
        return WaitingLine::Reply::kPass;
      }
    }
    bytes += ticket.bytes;
    soonest = std::min(soonest, ticket.deadline);
    Start(ticket);
    batch_->tickets.push_back(ticket.id);
    batch_->seconds += ticket.seconds;
    ++running_wanted_;
    return WaitingLine::Reply::kTake;
  });
  batch_start_ = last_progress_ = now;
  batch_end_ = now + absl::Seconds(batch_->seconds);
  batch_soonest_ = soonest;
  interrupted_ = longest_layer_ = 0;
  return *batch_;
}

std::vector<TicketId> Scheduler::TakeDrops() {
  return std::exchange(step_ ? step_drops_ : drops_, {});
}

void Scheduler::Finish() {
  for (const TicketId id : batch_->tickets) {
    const auto it = entries_.find(id);
    const Entry& entry = it->second;
    if (entry.stage == Stage::kRunning) deadlines_.erase({entry.deadline, id});
    Count(entry.model, entry.stage, 0, -1);
    entries_.erase(it);
  }
  if (longest_layer_ > 0) {
    const double whole = std::max(batch_->seconds, longest_layer_);
    const double share = longest_layer_ / whole;
    layer_share_ = std::max(share, 0.9 * layer_share_ + 0.1 * share);
  }
  batch_.reset();
  drops_.clear();
  running_wanted_ = 0;
  last_progress_ = clock_.Now();
}

absl::Duration Scheduler::Stalled() const {
  if (running() || !HasWork()) return absl::ZeroDuration();
  return clock_.Now() - last_progress_;
}

double Scheduler::WorkSeconds() const {
  const absl::Time now = clock_.Now();
  return expected_.seconds() + line_.seconds() + roster_.LeftSeconds() +
         absl::ToDoubleSeconds(EarliestStart(now) - now);
}

QueueGauges Scheduler::GaugesOf(ModelId model) const {
  const auto it = gauges_.find(model);
  return it == gauges_.end() ? QueueGauges{} : it->second;
}

QueueGauges Scheduler::Gauges() const {
  QueueGauges sum;
  for (const auto& [model, gauges] : gauges_) {
    sum.queued_requests += gauges.queued_requests;
    sum.running_requests += gauges.running_requests;
    sum.queued_seconds += gauges.queued_seconds;
  }
  return sum;
}

size_t Scheduler::remembered() const {
  return entries_.size() + gauges_.size() + latest_starts_.size() + latest_joins_.size() +
         deadlines_.size() + drops_.size() + step_drops_.size() + leaving_.size() +
         starving_.size() + holds_.size() + roster_.size() + expected_.size() + line_.size() +
         line_.remembered();
}

}  // namespace longview::server
