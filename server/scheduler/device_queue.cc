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

void DeviceQueue::Expect(TicketId id, ModelId model, absl::Time deadline) {
  std::lock_guard lock(mutex_);
  scheduler_.Expect(id, model, deadline);
  if (scheduler_.NextExpiry() < timer_at_) timer_changed_.notify_one();
}

Admission DeviceQueue::Admit(const Ticket& ticket) {
  std::lock_guard lock(mutex_);
  Admission admission = scheduler_.Admit(ticket);
  if (admission.verdict == Verdict::kAdmitted) {
    if (!scheduler_.running()) work_changed_.notify_one();
    if (scheduler_.NextExpiry() < timer_at_) timer_changed_.notify_one();
  }
  return admission;
}

Admission DeviceQueue::Judge(const Ticket& ticket) const {
  std::lock_guard lock(mutex_);
  return scheduler_.Judge(ticket);
}

CancelOutcome DeviceQueue::Cancel(TicketId id) {
  std::lock_guard lock(mutex_);
  return scheduler_.Cancel(id);
}

std::optional<Batch> DeviceQueue::NextBatch() {
  std::unique_lock lock(mutex_);
  while (true) {
    ExpireAndReport(lock);
    if (std::exchange(wake_, false) || stopped_) return std::nullopt;
    if (std::optional<Batch> batch = scheduler_.NextBatch()) {
      // The batch may have made others late.
      if (scheduler_.NextExpiry() < timer_at_) timer_changed_.notify_one();
      return batch;
    }
    work_changed_.wait(lock);
  }
}

DeviceQueue::Drops DeviceQueue::TakeDrops() {
  std::lock_guard lock(mutex_);
  return {scheduler_.TakeDrops(), scheduler_.Wanted()};
}

void DeviceQueue::Finish() {
  std::lock_guard lock(mutex_);
  scheduler_.Finish();
}

bool DeviceQueue::HasWork() const {
  std::lock_guard lock(mutex_);
  return wake_ || stopped_ || scheduler_.waiting();
}

void DeviceQueue::Wake() {
  std::lock_guard lock(mutex_);
  wake_ = true;
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
