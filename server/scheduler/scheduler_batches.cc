// Batches: who is next, what goes into one, and the short ones between the slices of a long one.
//
// An aged ticket (the one that came first, once it has waited for `patience`) is next whenever
// nothing is owed to the others; after it they are owed seven times what its batch takes. What they
// had beyond that counts for the aged one after it, so that of any stretch of batches while there
// is one an eighth is theirs, to within a batch.
#include <algorithm>
#include <utility>

#include "server/scheduler/scheduler.h"

namespace longview::server {
namespace {

// Seconds owed to the others for each second of an aged ticket's batch: seven parts of eight.
constexpr double kOwed = 7;

}  // namespace

const Ticket* Scheduler::AgedNext() const {
  if (owed_ > 0) return nullptr;
  const Ticket* oldest = queue_.Oldest();
  return oldest != nullptr && queue_.Aged(oldest->id) <= clock_.Now() ? oldest : nullptr;
}

const Ticket* Scheduler::NextFor(const Lane& lane) const {
  if (!lane.running_set.empty() && OthersFree(lane) > 0) return nullptr;
  const Ticket* aged = AgedNext();
  return aged != nullptr ? aged : queue_.Next();
}

Batch Scheduler::StartNext(const Ticket& first, Lane& lane) {
  const Ticket* aged = AgedNext();
  const bool for_age = aged != nullptr && aged->id == first.id;
  const Ticket* oldest = queue_.Oldest();
  const bool some_aged = queue_.Aged(oldest->id) <= clock_.Now();
  const Batch batch = StartBatch(first, lane, BatchBudget(lane), /*nested=*/false);
  if (for_age) {
    owed_ += kOwed * batch.seconds;
  } else {
    owed_ = some_aged ? owed_ - batch.seconds : std::max(0.0, owed_ - batch.seconds);
  }
  return batch;
}

Batch Scheduler::StartBatch(const Ticket& first, Lane& lane, double most, bool nested) {
  const absl::Time now = clock_.Now();
  RunningBatch running;
  running.start = last_progress_ = now;
  running.soonest = absl::InfiniteFuture();
  Batch& batch = running.batch;
  batch.model = first.model;
  // Steps that go between its slices take as long as it does, at most.
  const double stretch = lane.running_set.empty() ? 1 : 2;
  const double reserved = nested ? lane.batches.back().bytes : 0;
  const auto add = [&](const Ticket& ticket) {
    running.bytes += ticket.bytes;
    running.soonest = std::min(running.soonest, ticket.deadline);
    Start(ticket, lane);
    entries_.at(ticket.id).depth = lane.batches.size();
    batch.tickets.push_back(ticket.id);
    batch.seconds += ticket.seconds;
    ++running.wanted;
  };
  queue_.Serve(first.id, [&](const Ticket& ticket) {
    const int items = static_cast<int>(batch.tickets.size());
    if (items == 0) {
      add(ticket);
      return WaitingQueue::Reply::kTake;
    }
    if (items == options_.max_batch_items || batch.seconds >= most) {
      return WaitingQueue::Reply::kStop;
    }
    const double seconds = batch.seconds + ticket.seconds;
    const absl::Time end = now + absl::Seconds(stretch * seconds);
    const bool in_time = end <= std::min(running.soonest, ticket.deadline);
    const double bytes = reserved + running.bytes + ticket.bytes;
    const bool fits = options_.memory_bytes <= 0 || bytes <= options_.memory_bytes;
    if (seconds > most || !in_time || !fits) return WaitingQueue::Reply::kPass;
    add(ticket);
    return WaitingQueue::Reply::kTake;
  });
  running.end = now + absl::Seconds(batch.seconds);
  for (RunningBatch& outer : lane.batches) outer.end += absl::Seconds(batch.seconds);
  const Batch started = batch;
  lane.batches.push_back(std::move(running));
  lane.stepped = false;
  return started;
}

void Scheduler::BeginTask(double seconds, int number) {
  Lane& lane = LaneAt(number);
  RunningBatch running;
  running.task = true;
  running.start = last_progress_ = clock_.Now();
  running.end = running.start + absl::Seconds(seconds);
  running.soonest = absl::InfiniteFuture();
  running.batch.seconds = seconds;
  // Nobody is wanted in it: how long it takes is no more than a guess, which makes no ticket late.
  lane.batches.push_back(std::move(running));
  lane.stepped = false;
}

double Scheduler::NestedTotal(const RunningBatch& outer) const {
  if (options_.nested_share <= 0) return 0;
  const double seconds = outer.batch.seconds;
  if (outer.task) return seconds + options_.batch_seconds;
  return std::max(options_.nested_share * seconds,
                  std::min(options_.nested_seconds, (seconds - 1) / 4));
}

double Scheduler::NestedAdvance(const RunningBatch& outer) const {
  // A batch of several is soon over; what waits for it goes into the next one together.
  if (outer.batch.seconds <= options_.batch_seconds) return 0;
  return std::min(options_.batch_seconds, NestedTotal(outer));
}

double Scheduler::NestedAllowance(const RunningBatch& outer, double own) const {
  const double seconds = outer.batch.seconds, total = NestedTotal(outer);
  if (own >= seconds) return total + NestedShare(outer) * (own - seconds);
  const double advance = NestedAdvance(outer);
  return advance + (total - advance) * own / seconds;
}

double Scheduler::NestedAfter(const RunningBatch& outer, double nested) const {
  const double seconds = outer.batch.seconds, total = NestedTotal(outer);
  if (nested >= total) return seconds + (nested - total) / NestedShare(outer);
  const double advance = NestedAdvance(outer);
  return nested <= advance ? 0 : seconds * (nested - advance) / (total - advance);
}

Scheduler::NestedRoom Scheduler::NestedRoomOf(const Lane& lane) const {
  if (lane.batches.size() != 1) return {};
  const RunningBatch& outer = lane.batches.front();
  const absl::Time now = clock_.Now();
  double most = outer.Left(now);
  if (outer.soonest != absl::InfiniteFuture()) {
    most = std::min(most, absl::ToDoubleSeconds(outer.soonest - std::max(now, outer.end)));
  }
  const double own = outer.Own(now);
  const double left = NestedAllowance(outer, std::max(own, outer.batch.seconds)) - outer.nested;
  return {std::min(most, NestedAllowance(outer, own) - outer.nested),
          std::min({most, left, NestedAdvance(outer)})};
}

bool Scheduler::MayNest(const Lane& lane, const Ticket& ticket) const {
  const RunningBatch& outer = lane.batches.front();
  if (!options_.nests_within_model && ticket.model == outer.batch.model) return false;
  return options_.memory_bytes <= 0 || outer.bytes + ticket.bytes <= options_.memory_bytes;
}

std::optional<Batch> Scheduler::StartNested(Lane& lane) {
  const NestedRoom room = NestedRoomOf(lane);
  if (room.now <= 0) return std::nullopt;
  const Ticket* first = queue_.NextShort(
      room.now, room.soon, [&](const Ticket& ticket) { return MayNest(lane, ticket); });
  if (first == nullptr) return std::nullopt;
  return StartBatch(*first, lane, std::min(room.now, BatchBudget(lane)), /*nested=*/true);
}

double Scheduler::NestedWait(const Ticket& ticket) const {
  if (options_.nested_share <= 0) return kInfinity;
  const absl::Time now = clock_.Now();
  double least = kInfinity;
  for (const Lane& lane : lanes_) {
    if (!MayServe(lane, ticket) || lane.batches.empty() || !MayNest(lane, ticket)) continue;
    const RunningBatch& outer = lane.batches.front();
    const double left = outer.Left(now);
    // The shorter batch between its slices, if one runs.
    const RunningBatch* inner = lane.batches.size() > 1 ? &lane.batches.back() : nullptr;
    const double computed = outer.Own(now) - (inner == nullptr ? 0 : inner->Own(now));
    const double before = outer.nested + (inner == nullptr ? 0 : inner->batch.seconds);
    const auto until = [&](double nested) {
      return std::max(0.0, NestedAfter(outer, nested) - computed);
    };
    if (until(before + ticket.seconds) + ticket.seconds > left) continue;
    // Work as short as this goes first, and what steps take doubles the time.
    const double own = until(before + queue_.ShortSeconds(ticket.seconds) + ticket.seconds) +
                       (inner == nullptr ? 0 : std::max(0.0, inner->Left(now)));
    const double wait = (lane.running_set.empty() ? 1 : 2) * own + lane.Slice();
    const absl::Time end = std::max(now, outer.end) + absl::Seconds(ticket.seconds);
    if (own + ticket.seconds <= left && end <= outer.soonest) least = std::min(least, wait);
  }
  return least;
}

void Scheduler::CountSlice(Lane& lane) {
  // The outer batch stands still while an inner one runs.
  RunningBatch& running = lane.batches.back();
  const double own = running.Own(clock_.Now());
  const double least = -std::max(lane.running_set.Ceiling(), lane.Slice());
  const double lead = std::max(least, lane.steps_lead - (own - running.counted));
  running.counted = own;
  lane.steps_lead = lane.running_set.empty() ? 0 : lead;
}

void Scheduler::CountStep(Lane& lane, double seconds) {
  lane.stepped = !lane.batches.empty() || BatchesWait();
  lane.steps_lead = lane.stepped ? lane.steps_lead + seconds : 0;
}

std::vector<TicketId> Scheduler::TakeDrops(int number) {
  Lane& lane = LaneAt(number);
  if (lane.step) return std::exchange(lane.step_drops, {});
  return std::exchange(lane.batches.back().drops, {});
}

void Scheduler::Finish(int number) {
  Lane& lane = LaneAt(number);
  const absl::Time now = last_progress_ = clock_.Now();
  const double slice = lane.batches.back().Own(now) - lane.batches.back().counted;
  CountSlice(lane);
  const RunningBatch done = std::move(lane.batches.back());
  lane.batches.pop_back();
  for (const TicketId id : done.batch.tickets) {
    const auto it = entries_.find(id);
    const Entry& entry = it->second;
    if (entry.stage == Stage::kRunning) deadlines_.erase({entry.deadline, id});
    Count(entry.model, entry.stage, 0, -1);
    entries_.erase(it);
  }
  // Decays by a tenth with each batch, so that one slow batch does not lengthen the ceiling for
  // good.
  lane.longest_slice = std::max({slice, done.longest_slice, 0.9 * lane.longest_slice});
  if (lane.batches.empty()) return;
  RunningBatch& outer = lane.batches.back();
  const double own = done.Own(now);
  outer.interrupted += own;
  outer.nested += own;
  outer.counted = outer.Own(now);
  outer.end += absl::Seconds(own - done.batch.seconds);
}

}  // namespace longview::server
