#include "server/scheduler/device_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/scheduler/thread_loop.h"

namespace longview::server {
namespace {

// So that a step of the wall clock is noticed.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);

// Seconds of the ticket that the queue's bound counts.
double QueuedSeconds(const Ticket& ticket) {
  return ticket.generates() ? ticket.prompt_seconds : ticket.seconds;
}

// All that comes back with it if it is refused.
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
    std::lock_guard lock(mutex_);
    stopped_ = ending_ = true;
    for (Sleeper& sleeper : sleepers_) sleeper.work_changed.notify_all();
    timer_changed_.notify_all();
  }
  timer_.join();
}

void DeviceQueue::ExpireAndReport(std::unique_lock<std::mutex>& lock) {
  while (true) {
    const std::vector<Departure> departures = scheduler_.Expire();
    if (departures.empty()) return;
    lock.unlock();
    {
      std::lock_guard report(report_mutex_);
      on_departures_(departures);
    }
    lock.lock();
  }
}

void DeviceQueue::TimerLoop() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    ExpireAndReport(lock);
    timer_at_ = scheduler_.NextExpiry();
    if (ending_) return;
    if (timer_at_ == absl::InfiniteFuture()) {
      timer_changed_.wait(lock);
    } else {
      const absl::Duration left = std::min(kLongestSleep, timer_at_ - clock_.Now());
      timer_changed_.wait_for(lock, absl::ToChronoNanoseconds(left));
    }
  }
}

void DeviceQueue::NotifyChanged(std::unique_lock<std::mutex>& lock) {
  // A notification under the lock would wake a thread only to wait for it. One lane is enough for
  // a batch: when it has taken it, it wakes the next. Who waits to generate is started where least
  // is left to do, which is for the lanes to find out.
  std::vector<std::condition_variable*> woken;
  bool enough = false;
  for (int lane = 0; lane < static_cast<int>(sleepers_.size()); ++lane) {
    Sleeper& sleeper = SleeperOf(lane);
    if (!sleeper.idle || scheduler_.running(lane)) continue;
    const bool own = scheduler_.HasOwnWork(lane);
    if (!own && (enough || !scheduler_.HasWork(lane))) continue;
    if (!own) enough = !scheduler_.WaitsToGenerate();
    sleeper.idle = false;
    woken.push_back(&sleeper.work_changed);
  }
  const bool timer = scheduler_.NextExpiry() < timer_at_;
  lock.unlock();
  for (std::condition_variable* work_changed : woken) work_changed->notify_one();
  if (timer) timer_changed_.notify_one();
}

Admission DeviceQueue::Expect(const Ticket& ticket) {
  std::unique_lock lock(mutex_);
  Admission admission = scheduler_.Expect(ticket);
  if (admission.verdict == Verdict::kQueueFull) {
    admission.retry_after = PlaceInLine(ReturningWith(ticket), RoomForList(ticket, admission));
  }
  NotifyChanged(lock);
  return admission;
}

Admission DeviceQueue::Admit(std::span<const Ticket> tickets) {
  std::unique_lock lock(mutex_);
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
  NotifyChanged(lock);
  return admission;
}

Admission DeviceQueue::Judge(const Ticket& ticket) const {
  std::lock_guard lock(mutex_);
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
  std::lock_guard lock(mutex_);
  return PlaceInLine(ReturningWith(ticket), room);
}

CancelOutcome DeviceQueue::Cancel(TicketId id) {
  std::unique_lock lock(mutex_);
  const CancelOutcome outcome = scheduler_.Cancel(id);
  NotifyChanged(lock);
  return outcome;
}

std::optional<Batch> DeviceQueue::NextBatch(int lane) {
  std::unique_lock lock(mutex_);
  Sleeper& sleeper = SleeperOf(lane);
  while (true) {
    ExpireAndReport(lock);
    if (std::exchange(sleeper.wake, false) || stopped_) {
      scheduler_.Yield(lane);
      // The work left for this lane goes to the others.
      NotifyChanged(lock);
      return std::nullopt;
    }
    if (std::optional<Batch> batch = scheduler_.NextBatch(lane)) {
      // The batch may have made others late, or left work for other lanes.
      NotifyChanged(lock);
      return batch;
    }
    sleeper.idle = true;
    sleeper.work_changed.wait(lock);
    sleeper.idle = false;
  }
}

std::optional<Batch> DeviceQueue::Interrupt(double slice_seconds, int lane) {
  std::unique_lock lock(mutex_);
  std::optional<Batch> turn = scheduler_.Interrupt(slice_seconds, lane);
  if (turn) NotifyChanged(lock);
  return turn;
}

void DeviceQueue::BeginTask(double seconds, int lane) {
  std::lock_guard lock(mutex_);
  scheduler_.BeginTask(seconds, lane);
}

DeviceQueue::Drops DeviceQueue::TakeDrops(int lane) {
  std::lock_guard lock(mutex_);
  return {scheduler_.TakeDrops(lane), scheduler_.Wanted(lane)};
}

void DeviceQueue::Finish(int lane) {
  std::lock_guard lock(mutex_);
  scheduler_.Finish(lane);
}

void DeviceQueue::Finish(std::span<const StepOutcome> outcomes, int lane) {
  std::unique_lock lock(mutex_);
  scheduler_.Finish(outcomes, lane);
  NotifyChanged(lock);
}

void DeviceQueue::Hold(uint64_t key, double bytes, int lane) {
  std::unique_lock lock(mutex_);
  scheduler_.Hold(key, bytes, lane);
  NotifyChanged(lock);
}

std::optional<int> DeviceQueue::OpenDocument() {
  std::lock_guard lock(mutex_);
  return scheduler_.OpenDocument();
}

void DeviceQueue::CloseDocument(uint64_t key, int lane) {
  std::unique_lock lock(mutex_);
  scheduler_.CloseDocument(key, lane);
  NotifyChanged(lock);
}

void DeviceQueue::Lose(int lane) {
  std::unique_lock lock(mutex_);
  scheduler_.Lose(lane);
  NotifyChanged(lock);
}

bool DeviceQueue::lost(int lane) const {
  std::lock_guard lock(mutex_);
  return scheduler_.lost(lane);
}

bool DeviceQueue::HasWork(int lane) const {
  std::lock_guard lock(mutex_);
  return sleepers_[static_cast<size_t>(lane)].wake || stopped_ || scheduler_.HasWork(lane);
}

void DeviceQueue::Wake(int lane) {
  std::unique_lock lock(mutex_);
  Sleeper& sleeper = SleeperOf(lane);
  sleeper.wake = true;
  lock.unlock();
  sleeper.work_changed.notify_all();
}

void DeviceQueue::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  for (Sleeper& sleeper : sleepers_) sleeper.work_changed.notify_all();
}

bool DeviceQueue::stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

absl::Duration DeviceQueue::Stalled() const {
  std::lock_guard lock(mutex_);
  return scheduler_.Stalled();
}

double DeviceQueue::WorkSeconds() const {
  std::lock_guard lock(mutex_);
  return scheduler_.WorkSeconds();
}

double DeviceQueue::InterTokenCeiling() const {
  std::lock_guard lock(mutex_);
  return scheduler_.InterTokenCeiling();
}

QueueGauges DeviceQueue::GaugesOf(ModelId model) const {
  std::lock_guard lock(mutex_);
  return scheduler_.GaugesOf(model);
}

QueueGauges DeviceQueue::Gauges() const {
  std::lock_guard lock(mutex_);
  return scheduler_.Gauges();
}

size_t DeviceQueue::remembered() const {
  std::lock_guard lock(mutex_);
  return scheduler_.remembered();
}

}  // namespace longview::server
