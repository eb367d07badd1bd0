#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "server/scheduler/lane_wait.h"

namespace longview::server {
namespace {

// The index finds tickets strictly before a time; a timer set to their time must fire after.
constexpr absl::Duration kTick = absl::Microseconds(1);
// Least delay a client is told: a retry any sooner would find the same queue.
constexpr absl::Duration kMinRetry = absl::Milliseconds(10);
// Delay where documents hold the memory: nothing predicts when one of them is closed.
constexpr absl::Duration kMemoryRetry = absl::Seconds(1);

absl::Duration RetryAfter(double seconds) { return std::max(kMinRetry, absl::Seconds(seconds)); }

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      queue_(options.slack_seconds, options.patience),
      last_progress_(clock.Now()) {
  lanes_.reserve(static_cast<size_t>(options.lanes));
  for (int i = 0; i < options.lanes; ++i) lanes_.emplace_back(i, options.inter_token_seconds);
}

absl::Time Scheduler::LatestStart(const Ticket& ticket) {
  return ticket.firm ? ticket.deadline - absl::Seconds(ticket.seconds) : ticket.deadline;
}

absl::Time Scheduler::EarliestStart(absl::Time now) const {
  absl::Time earliest = absl::InfiniteFuture();
  for (const Lane& lane : lanes_) {
    if (!lane.lost) earliest = std::min(earliest, lane.FreeAt(now));
  }
  return earliest == absl::InfiniteFuture() ? now : earliest;
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
  const std::vector<const Lane*> lanes = LanesFor(ticket);
  if (lanes.empty()) return {Verdict::kLost, 0, std::nullopt, 0, 0, {}};
  Admission result;
  const absl::Time now = clock_.Now();
  const double limit = options_.memory_bytes;
  const bool stateless = !options_.keeps_state && ticket.generates() && ticket.bytes > 0;
  if (stateless || (limit > 0 && ticket.bytes > limit)) {
    return {Verdict::kTooLarge, 0, std::nullopt, ticket.bytes, limit, {}};
  }
  if (limit > 0 && ticket.generates() && ticket.bytes > RoomBesideDocuments(ticket)) {
    const double room = RoomBesideDocuments(ticket);
    return {Verdict::kMemoryFull, 0, kMemoryRetry, ticket.bytes, room, {}};
  }

  const LaneWait wait(lanes, AliveLanes(), now, ticket.generates());
  const Bound bound = BoundOf(ticket);
  const double queued = queue_.Seconds(bound.measure) + bound.started - freed;
  const double others = queue_.seconds() - queue_.Seconds(bound.measure) - bound.started;
  const double beside = std::max(0.0, wait.beside() + others / AliveLanes());
  const auto wait_for = [&](double work) {
    // Work that the ticket does not wait for shares the device with it, and takes at most half.
    const double ahead = wait.Behind(work);
    return ahead + std::min(beside, ahead + ticket.seconds);
  };
  const auto started = [&](const std::string& client, absl::Time until) {
    return ticket.generates() ? StartedPromptsOf(client, until) : 0;
  };
  result.wait_seconds = wait_for(queued);
  // Short work need not wait for long work to end.
  const double nested = ticket.generates() ? kInfinity : NestedWait(ticket);
  result.wait_seconds = std::min(result.wait_seconds, nested);
  if (ticket.firm && ticket.deadline != absl::InfiniteFuture()) {
    const double available = absl::ToDoubleSeconds(ticket.deadline - now);
    // The order of turns matters only where not all waiting work fits before the deadline.
    const bool roomy = result.wait_seconds + ticket.seconds <= available;
    if (!roomy) {
      const double ahead = queue_.WorkAhead(ticket, now, bound.measure, started);
      result.wait_seconds = std::min(nested, wait_for(ahead));
    }
    const double need = result.wait_seconds + ticket.seconds;
    if (!roomy && need > available) {
      std::optional<absl::Duration> retry;
      if (ticket.seconds <= available) retry = RetryAfter(need - available);
      return {Verdict::kTooLate, result.wait_seconds, retry, need, std::max(0.0, available), {}};
    }
  }

  const double need = queued + ticket.*bound.measure;
  if (bound.applies && need > QueueLimit()) {
    const absl::Duration retry = RetryAfter(wait.Behind(need - QueueLimit()));
    return {Verdict::kQueueFull, result.wait_seconds, retry, need, QueueLimit(), {}, AliveLanes()};
  }
  return result;
}

Admission Scheduler::JudgeKnown(const Ticket& ticket) const {
  Admission result = JudgeWithRoom(ticket, 0);
  if (result.verdict != Verdict::kQueueFull) return result;
  const WaitingQueue::Measure measure = BoundOf(ticket).measure;
  const double own = queue_.ClientSeconds(ticket.client, measure) + ticket.*measure;
  std::vector<TicketId> displaced =
      queue_.Displaceable(ticket.client, result.need - result.limit, own, measure);
  if (displaced.empty()) return result;
  double freed = 0;
  for (const TicketId id : displaced) freed += queue_.Find(id)->*measure;
  result = JudgeWithRoom(ticket, freed);
  if (result.verdict == Verdict::kAdmitted) result.displaced = std::move(displaced);
  return result;
}

Admission Scheduler::Judge(const Ticket& ticket) const {
  Admission result = JudgeKnown(ticket);
  result.wait_seconds += expected_.seconds() / std::max(1, AliveLanes());
  return result;
}

Admission Scheduler::Admit(std::span<const Ticket> tickets) {
  Ticket whole = tickets.front();
  for (const Ticket& ticket : tickets) {
    if (entries_.contains(ticket.id)) Cancel(ticket.id);
    if (&ticket == &tickets.front()) continue;
    whole.seconds += ticket.seconds;
    whole.bytes = std::max(whole.bytes, ticket.bytes);
  }
  Admission result = JudgeKnown(whole);
  if (result.verdict != Verdict::kAdmitted) return result;
  for (const TicketId id : result.displaced) RemoveWaiting(id);
  for (const Ticket& ticket : tickets) Enter(ticket);
  return result;
}

void Scheduler::Enter(const Ticket& ticket) {
  const absl::Time now = clock_.Now();
  if (!HasWork() && !running()) last_progress_ = now;
  queue_.Add(ticket, now);
  entries_.emplace(ticket.id, Entry{Stage::kWaiting, ticket.model, ticket.deadline, ticket.seconds,
                                    ticket.bytes, ticket.generates()});
  if (ticket.deadline != absl::InfiniteFuture()) {
    StartsOf(ticket).insert({LatestStart(ticket), ticket.id});
  }
  if (ticket.generates()) JoinsChanged();
  Count(ticket.model, Stage::kWaiting, ticket.seconds, +1);
}

void Scheduler::EraseStart(const Ticket& ticket) {
  const std::pair start(LatestStart(ticket), ticket.id);
  latest_starts_.erase(start);
  latest_joins_.erase(start);
}

void Scheduler::RemoveWaiting(TicketId id) {
  const Ticket ticket = queue_.Remove(id);
  EraseStart(ticket);
  Count(ticket.model, Stage::kWaiting, ticket.seconds, -1);
  entries_.erase(id);
  JoinsChanged();
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
      if (Lane& lane = LaneAt(entry.lane); entry.generates) {
        (entry.in_turn ? lane.step_drops : lane.leaving).push_back(id);
      } else {
        RunningBatch& running = lane.batches[entry.depth];
        running.drops.push_back(id);
        --running.wanted;
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
    const auto latest = *latest_starts_.begin();
    const TicketId id = latest.second;
    const double wait = NestedWait(*queue_.Find(id));
    // The device is not free in time, but the ticket can still go between slices of its batch: the
    // other index keeps it until its latest start itself has passed.
    if (latest.first >= now && now + absl::Seconds(wait) <= latest.first) {
      latest_starts_.erase(latest);
      latest_joins_.insert(latest);
      continue;
    }
    RemoveWaiting(id);
    departures.push_back({id, false});
  }
  while (!latest_joins_.empty() && latest_joins_.begin()->first < now) {
    const TicketId id = latest_joins_.begin()->second;
    RemoveWaiting(id);
    departures.push_back({id, false});
  }
  departures.insert(departures.end(), evicted_.begin(), evicted_.end());
  evicted_.clear();
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
  if (!evicted_.empty()) next = clock_.Now();
  return next;
}

void Scheduler::Start(const Ticket& ticket, Lane& lane) {
  Entry& entry = entries_.at(ticket.id);
  entry.lane = lane.number;
  entry.stage = Stage::kRunning;
  EraseStart(ticket);
  if (ticket.deadline != absl::InfiniteFuture()) deadlines_.insert({ticket.deadline, ticket.id});
  Count(ticket.model, Stage::kWaiting, ticket.seconds, -1);
  Count(ticket.model, Stage::kRunning, 0, +1);
}

absl::Duration Scheduler::Stalled() const {
  if (running() || !HasWork()) return absl::ZeroDuration();
  return clock_.Now() - last_progress_;
}

double Scheduler::WorkSeconds() const {
  const absl::Time now = clock_.Now();
  double begun = 0;
  for (const Lane& lane : lanes_) begun += lane.running_set.LeftSeconds() + lane.BusySeconds(now);
  return expected_.seconds() + queue_.seconds() + begun;
}

QueueGauges Scheduler::GaugesOf(ModelId model) const {
  const auto it = gauges_.find(model);
  QueueGauges gauges = it == gauges_.end() ? QueueGauges{} : it->second;
  gauges.queued_seconds += WaitingPromptsOf(model);
  return gauges;
}

QueueGauges Scheduler::Gauges() const {
  QueueGauges sum;
  for (const auto& [model, gauges] : gauges_) {
    sum.queued_requests += gauges.queued_requests;
    sum.running_requests += gauges.running_requests;
    sum.queued_seconds += gauges.queued_seconds;
  }
  sum.queued_seconds += WaitingPrompts();
  return sum;
}

size_t Scheduler::remembered() const {
  size_t lanes = 0;
  for (const Lane& lane : lanes_) lanes += lane.remembered();
  return entries_.size() + gauges_.size() + latest_starts_.size() + latest_joins_.size() +
         deadlines_.size() + evicted_.size() + expected_.size() + queue_.size() +
         queue_.remembered() + lanes;
}

}  // namespace longview::server
