// The scheduler of one device, or of several alike (lanes), with a lock around it, a blocking
// NextBatch for each device's thread, and a timer thread that takes out expired tickets within
// milliseconds.
//
// Thread-safe. Of a lane, NextBatch, Interrupt, TakeDrops, BeginTask, Finish and Lose belong to one
// thread, its executor's.
#pragma once

#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/scheduler/clock.h"
#include "server/scheduler/return_line.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/scheduler/ticket.h"

namespace longview::server {

class DeviceQueue {
 public:
  // Called on the timer or an executor's thread, without the lock: tickets that left because
  // of their deadlines, or of what they can have no more.
  using OnDepartures = absl::AnyInvocable<void(std::span<const Departure>)>;

  // `clock` is borrowed and must run at the speed of real time.
  DeviceQueue(const SchedulerOptions& options, const Clock& clock, OnDepartures on_departures);
  ~DeviceQueue();

  // Scheduler's calls under the lock. Tickets that a full queue refuses get staggered retry delays
  // (ReturnLine).
  Admission Expect(const Ticket& ticket);
  Admission Admit(const Ticket& ticket) { return Admit({&ticket, 1}); }
  Admission Admit(std::span<const Ticket> tickets);
  Admission Judge(const Ticket& ticket) const;
  CancelOutcome Cancel(TicketId id);
  // The retry delay of a ticket that was displaced, if there is room for it after `room`.
  absl::Duration ReturnDelay(const Ticket& ticket, absl::Duration room);

  // Blocks until there is work for the lane; nothing after Wake or Stop.
  std::optional<Batch> NextBatch(int lane = 0);
  struct Drops {
    std::vector<TicketId> tickets;
    bool wanted;  // Whether anybody waits for the rest.
  };
  Drops TakeDrops(int lane = 0);
  // Scheduler::Interrupt: a turn that goes before the next slice of the running batch.
  std::optional<Batch> Interrupt(double slice_seconds, int lane = 0);
  void BeginTask(double seconds, int lane = 0);
  void Finish(int lane = 0);
  void Finish(std::span<const StepOutcome> outcomes, int lane = 0);
  void Hold(uint64_t key, double bytes, int lane = 0);
  std::optional<int> OpenDocument();
  void CloseDocument(uint64_t key, int lane);
  // The lane's device answers no more. REQUIRES: as Scheduler::Lose.
  void Lose(int lane);
  bool lost(int lane) const;
  // Whether NextBatch would return at once.
  bool HasWork(int lane = 0) const;

  // Makes one NextBatch of the lane, the present or else the following, return nothing.
  void Wake(int lane = 0);
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
  void ExpireAndReport() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) ABSL_LOCKS_EXCLUDED(report_mutex_);
  // Delay until there is room for the whole list whose first ticket was refused.
  absl::Duration RoomForList(const Ticket& ticket, const Admission& refused) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `returning.seconds`: of one device.
  absl::Duration PlaceInLine(Returning returning, absl::Duration room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the sleeping threads that have work since the last change.
  void NotifyChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The place where a lane's thread waits for work.
  struct Sleeper {
    absl::CondVar work_changed;
    bool idle = false;  // NextBatch waits.
    bool wake = false;
  };
  Sleeper& SleeperOf(int lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return sleepers_[static_cast<size_t>(lane)];
  }

  const Clock& clock_;
  OnDepartures on_departures_;
  absl::Mutex report_mutex_;  // Reports come one after the other.

  // Held for microseconds: policy only, never a callback.
  mutable absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(report_mutex_);
  SteadyCondVar timer_changed_;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  ReturnLine line_ ABSL_GUARDED_BY(mutex_);
  absl::Time timer_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::vector<Sleeper> sleepers_ ABSL_GUARDED_BY(mutex_);  // By lane.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread timer_;
};

}  // namespace longview::server
