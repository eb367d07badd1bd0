#include "server/scheduler/device_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace longview::server {
namespace {

// So that a step of the wall clock is noticed.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);

}  // namespace

DeviceQueue::DeviceQueue(const SchedulerOptions& options, const Clock& clock,
                         OnDepartures on_departures)
    : clock_(clock),
      on_departures_(std::move(on_departures)),
      scheduler_(options, clock),
      timer_([this] { TimerLoop(); }) {}

DeviceQueue::~DeviceQueue() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = ending_ = true;
    work_changed_.notify_all();
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
  // A notification under the lock would wake a thread only to wait for it.
  const bool work = idle_ && !scheduler_.running() && scheduler_.HasWork();
  if (work) idle_ = false;
  const bool timer = scheduler_.NextExpiry() < timer_at_;
  lock.unlock();
  if (work) work_changed_.notify_one();
  if (timer) timer_changed_.notify_one();
}

Admission DeviceQueue::Expect(const Ticket& ticket) {
  std::unique_lock lock(mutex_);
  Admission admission = scheduler_.Expect(ticket);
  NotifyChanged(lock);
  return admission;
}

Admission DeviceQueue::Admit(const Ticket& ticket) {
  std::unique_lock lock(mutex_);
  Admission admission = scheduler_.Admit(ticket);
  NotifyChanged(lock);
  return admission;
}

Admission DeviceQueue::Judge(const Ticket& ticket) const {
  std::lock_guard lock(mutex_);
  return scheduler_.Judge(ticket);
}

CancelOutcome DeviceQueue::Cancel(TicketId id) {
  std::unique_lock lock(mutex_);
  const CancelOutcome outcome = scheduler_.Cancel(id);
  NotifyChanged(lock);
  return outcome;
}

std::optional<Batch> DeviceQueue::NextBatch() {
  std::unique_lock lock(mutex_);
  while (true) {
    ExpireAndReport(lock);
    if (std::exchange(wake_, false) || stopped_) return std::nullopt;
    if (std::optional<Batch> batch = scheduler_.NextBatch()) {
      // The batch may have made others late.
      NotifyChanged(lock);
      return batch;
    }
    idle_ = true;
    work_changed_.wait(lock);
    idle_ = false;
  }
}

std::optional<Batch> DeviceQueue::Interrupt(double layer_seconds) {
  std::lock_guard lock(mutex_);
  return scheduler_.Interrupt(layer_seconds);
}

DeviceQueue::Drops DeviceQueue::TakeDrops() {
  std::lock_guard lock(mutex_);
  return {scheduler_.TakeDrops(), scheduler_.Wanted()};
}

void DeviceQueue::Finish() {
  std::lock_guard lock(mutex_);
  scheduler_.Finish();
}

void DeviceQueue::Finish(std::span<const StepOutcome> outcomes) {
  std::unique_lock lock(mutex_);
  scheduler_.Finish(outcomes);
  NotifyChanged(lock);
}

void DeviceQueue::Hold(uint64_t key, double bytes) {
  std::unique_lock lock(mutex_);
  scheduler_.Hold(key, bytes);
  NotifyChanged(lock);
}

bool DeviceQueue::HasWork() const {
  std::lock_guard lock(mutex_);
  return wake_ || stopped_ || scheduler_.HasWork();
}

void DeviceQueue::Wake() {
  std::unique_lock lock(mutex_);
  wake_ = true;
  lock.unlock();
  work_changed_.notify_all();
}

void DeviceQueue::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  work_changed_.notify_all();
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
