#include "server/scheduler/device_queue.h"

#include <algorithm>
#include <utility>

#include "server/scheduler/thread_loop.h"
#include "server/scheduler/without_lock.h"

namespace longview::server {
namespace {

// Upper bound of a timed wait, so that a clock that jumps delays a deadline by no more than this.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);

// Seconds of the ticket that the queue's bound counts.
double QueuedSeconds(const Ticket& ticket) {
  return ticket.generates() ? ticket.prompt_seconds : ticket.seconds;
}

// The whole list that comes back with the ticket if it is refused.
Returning ReturningWith(const Ticket& ticket) {
  return {ticket.client, ticket.arrival, ticket.list * QueuedSeconds(ticket)};
}

}  // namespace

DeviceQueue::DeviceQueue(const SchedulerOptions& options, const Clock& clock,
                         OnDepartures on_departures)
    : clock_(clock),
      on_departures_(std::move(on_departures)),
      scheduler_(options, clock),
      line_(options.max_queue_seconds),
      sleepers_(static_cast<size_t>(options.lanes)),
      timer_(StartThread([this] { TimerLoop(); })) {}

DeviceQueue::~DeviceQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = ending_ = true;
    for (Sleeper& sleeper : sleepers_) sleeper.work_changed.SignalAll();
    timer_changed_.SignalAll();
  }
  timer_.join();
}

void DeviceQueue::ExpireAndReport() {
  while (true) {
    const std::vector<Departure> departures = scheduler_.Expire();
    if (departures.empty()) return;
    // The callback takes the engine's mutex, which is always taken before this one.
    WithoutLock(&mutex_, [&] {
      absl::MutexLock report(&report_mutex_);
      on_departures_(departures);
    });
  }
}

void DeviceQueue::TimerLoop() {
  absl::MutexLock lock(&mutex_);
  while (!ending_) {
    ExpireAndReport();
    // Set under the same lock as the wait: NotifyChanged compares with it, so that an earlier
    // expiry that comes in between cannot be missed.
    timer_at_ = scheduler_.NextExpiry();
    if (ending_) return;
    if (timer_at_ == absl::InfiniteFuture()) {
      timer_changed_.Wait(&mutex_);
    } else {
      const absl::Duration left = std::min(kLongestSleep, timer_at_ - clock_.Now());
      timer_changed_.WaitFor(&mutex_, left);
    }
  }
}

void DeviceQueue::NotifyChanged() {
  // One lane is enough for a batch: when it has taken it, it wakes the next. Who waits to generate
  // is started where least is left to do, which is for the lanes to find out. A thread that is
  // signalled under the lock goes on once it is free.
  bool enough = false;
  for (int lane = 0; lane < static_cast<int>(sleepers_.size()); ++lane) {
    Sleeper& sleeper = SleeperOf(lane);
    if (!sleeper.idle || scheduler_.running(lane)) continue;
    const bool own = scheduler_.HasOwnWork(lane);
    if (!own && (enough || !scheduler_.HasWork(lane))) continue;
    if (!own) enough = !scheduler_.WaitsToGenerate();
    sleeper.idle = false;
    sleeper.work_changed.Signal();
  }
  if (scheduler_.NextExpiry() < timer_at_) timer_changed_.Signal();
}

Admission DeviceQueue::Expect(const Ticket& ticket) {
  absl::MutexLock lock(&mutex_);
  Admission admission = scheduler_.Expect(ticket);
  if (admission.verdict == Verdict::kQueueFull) {
    admission.retry_after = PlaceInLine(ReturningWith(ticket), RoomForList(ticket, admission));
  }
  NotifyChanged();
  return admission;
}

Admission DeviceQueue::Admit(std::span<const Ticket> tickets) {
  absl::MutexLock lock(&mutex_);
  Admission admission = scheduler_.Admit(tickets);
  if (admission.verdict == Verdict::kQueueFull) {
    Returning all = ReturningWith(tickets.front());
    if (tickets.size() > 1) {
      all.seconds = 0;
      for (const Ticket& ticket : tickets) all.seconds += QueuedSeconds(ticket);
    }
    const absl::Duration room =
        tickets.size() > 1 ? *admission.retry_after : RoomForList(tickets.front(), admission);
    admission.retry_after = PlaceInLine(std::move(all), room);
  }
  NotifyChanged();
  return admission;
}

Admission DeviceQueue::Judge(const Ticket& ticket) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.Judge(ticket);
}

absl::Duration DeviceQueue::RoomForList(const Ticket& ticket, const Admission& refused) const {
  const double others = (ticket.list - 1) * QueuedSeconds(ticket);
  return *refused.retry_after + absl::Seconds(others / static_cast<double>(sleepers_.size()));
}

absl::Duration DeviceQueue::PlaceInLine(Returning returning, absl::Duration room) {
  returning.seconds /= static_cast<double>(sleepers_.size());
  return line_.Next(returning, room, clock_.Now());
}

absl::Duration DeviceQueue::ReturnDelay(const Ticket& ticket, absl::Duration room) {
  absl::MutexLock lock(&mutex_);
  return PlaceInLine(ReturningWith(ticket), room);
}

CancelOutcome DeviceQueue::Cancel(TicketId id) {
  absl::MutexLock lock(&mutex_);
  const CancelOutcome outcome = scheduler_.Cancel(id);
  NotifyChanged();
  return outcome;
}

std::optional<Batch> DeviceQueue::NextBatch(int lane) {
  absl::MutexLock lock(&mutex_);
  Sleeper& sleeper = SleeperOf(lane);
  while (true) {
    ExpireAndReport();
    if (std::exchange(sleeper.wake, false) || stopped_) {
      scheduler_.Yield(lane);
      // The work left for this lane goes to the others.
      NotifyChanged();
      return std::nullopt;
    }
    if (std::optional<Batch> batch = scheduler_.NextBatch(lane)) {
      // The batch may have made others late, or left work for other lanes.
      NotifyChanged();
      return batch;
    }
    // A spurious wake-up is harmless: the loop looks again. NotifyChanged clears `idle` itself, so
    // that one piece of work does not wake the same thread twice.
    sleeper.idle = true;
    sleeper.work_changed.Wait(&mutex_);
    sleeper.idle = false;
  }
}

std::optional<Batch> DeviceQueue::Interrupt(double slice_seconds, int lane) {
  absl::MutexLock lock(&mutex_);
  std::optional<Batch> turn = scheduler_.Interrupt(slice_seconds, lane);
  if (turn) NotifyChanged();
  return turn;
}

void DeviceQueue::BeginTask(double seconds, int lane) {
  absl::MutexLock lock(&mutex_);
  scheduler_.BeginTask(seconds, lane);
}

DeviceQueue::Drops DeviceQueue::TakeDrops(int lane) {
  absl::MutexLock lock(&mutex_);
  return {scheduler_.TakeDrops(lane), scheduler_.Wanted(lane)};
}

void DeviceQueue::Finish(int lane) {
  absl::MutexLock lock(&mutex_);
  scheduler_.Finish(lane);
}

void DeviceQueue::Finish(std::span<const StepOutcome> outcomes, int lane) {
  absl::MutexLock lock(&mutex_);
  scheduler_.Finish(outcomes, lane);
  NotifyChanged();
}

void DeviceQueue::Hold(uint64_t key, double bytes, int lane) {
  absl::MutexLock lock(&mutex_);
  scheduler_.Hold(key, bytes, lane);
  NotifyChanged();
}

std::optional<int> DeviceQueue::OpenDocument() {
  absl::MutexLock lock(&mutex_);
  return scheduler_.OpenDocument();
}

void DeviceQueue::CloseDocument(uint64_t key, int lane) {
  absl::MutexLock lock(&mutex_);
  scheduler_.CloseDocument(key, lane);
  NotifyChanged();
}

void DeviceQueue::Lose(int lane) {
  absl::MutexLock lock(&mutex_);
  scheduler_.Lose(lane);
  NotifyChanged();
}

bool DeviceQueue::lost(int lane) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.lost(lane);
}

bool DeviceQueue::HasWork(int lane) const {
  absl::MutexLock lock(&mutex_);
  return sleepers_[static_cast<size_t>(lane)].wake || stopped_ || scheduler_.HasWork(lane);
}

void DeviceQueue::Wake(int lane) {
  absl::MutexLock lock(&mutex_);
  Sleeper& sleeper = SleeperOf(lane);
  sleeper.wake = true;
  sleeper.work_changed.SignalAll();
}

void DeviceQueue::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (Sleeper& sleeper : sleepers_) sleeper.work_changed.SignalAll();
}

bool DeviceQueue::stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

absl::Duration DeviceQueue::Stalled() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.Stalled();
}

double DeviceQueue::WorkSeconds() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.WorkSeconds();
}

double DeviceQueue::InterTokenCeiling() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.InterTokenCeiling();
}

QueueGauges DeviceQueue::GaugesOf(ModelId model) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.GaugesOf(model);
}

QueueGauges DeviceQueue::Gauges() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.Gauges();
}

size_t DeviceQueue::remembered() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.remembered();
}

}  // namespace longview::server
