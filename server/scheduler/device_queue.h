// The scheduler of one device with a lock around it, a blocking NextBatch for the device's
// thread, and a timer thread that takes out expired tickets within milliseconds.
//
// Thread-safe. NextBatch, Between, TakeDrops and Finish belong to one thread, the executor's.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "server/scheduler/clock.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/ticket.h"

namespace longview::server {

class DeviceQueue {
 public:
  // Called on the timer or the executor's thread, without the lock: tickets that left because
  // of their deadlines.
  using OnDepartures = absl::AnyInvocable<void(std::span<const Departure>)>;

  // `clock` is borrowed and must run at the speed of real time.
  DeviceQueue(const SchedulerOptions& options, const Clock& clock, OnDepartures on_departures);
  ~DeviceQueue();

  // As in Scheduler.
  Admission Expect(const Ticket& ticket);
  Admission Admit(const Ticket& ticket);
  Admission Judge(const Ticket& ticket) const;
  CancelOutcome Cancel(TicketId id);

  // Blocks until there is work; nothing after Wake or Stop.
  std::optional<Batch> NextBatch();
  struct Drops {
    std::vector<TicketId> tickets;
    bool wanted;  // Whether anybody waits for the rest.
  };
  Drops TakeDrops();
  // Scheduler::Interrupt: a turn that goes before the next layer of the running batch.
  std::optional<Batch> Interrupt(double layer_seconds);
  void Finish();
  void Finish(std::span<const StepOutcome> outcomes);
  void Hold(uint64_t key, double bytes);
  // Whether NextBatch would return at once.
  bool HasWork() const;

  // Makes one NextBatch, the present or else the following, return nothing.
  void Wake();
  // Makes every NextBatch return nothing, for good.
  void Stop();
  bool stopped() const;

  absl::Duration Stalled() const;
  double WorkSeconds() const;
  double InterTokenCeiling() const;
  QueueGauges GaugesOf(ModelId model) const;
  QueueGauges Gauges() const;
  size_t remembered() const;

 private:
  void TimerLoop();
  // Takes out who is expired and reports them with the lock released.
  void ExpireAndReport(std::unique_lock<std::mutex>& lock);
  // Releases the lock, then wakes whoever has something to do that it does not know of.
  void NotifyChanged(std::unique_lock<std::mutex>& lock);

  const Clock& clock_;
  OnDepartures on_departures_;
  mutable std::mutex report_mutex_;  // Reports come one after the other. Taken without mutex_.

  mutable std::mutex mutex_;  // Held for microseconds: policy only, never a callback.
  std::condition_variable work_changed_;
  std::condition_variable timer_changed_;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  absl::Time timer_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // NextBatch waits for work.
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread timer_;
};

}  // namespace longview::server
