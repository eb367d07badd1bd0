// One device's thread: takes turns for its lane from the queue, runs them layer by layer, and
// splits the results.
//
// Between two layers of a batch it drops items nobody waits for and stops if nobody is left; there,
// and where a layer pauses (models/pauses.h), it lets steps of generating calls (StepRunner) and a
// shorter batch through while the batch waits. Everything that belongs to
// the device's thread but is not a request goes through RunExclusive, between two turns, if it
// takes long (a model's warm-up: others go between its slices as between those of a batch), else
// through Post.
//
// Once a model says that the device is lost, all that is on it ends with UNAVAILABLE and the lane
// takes nothing more; the thread goes on for what was posted.
// Thread-safe. The queue and the functions given outlive it.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/engine_call.h"
#include "server/engine/lane_device.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/device_queue.h"

namespace longview::server {

// The outcome of a batch.
struct BatchResult {
  std::vector<EngineCall*> calls;
  // Per call; unset where it was dropped.
  std::vector<std::optional<absl::StatusOr<models::Answer>>> answers;
  absl::Time started;
  double predicted_seconds = 0;
  double forward_seconds = 0;
  double take_seconds = 0;
  double interrupted_seconds = 0;  // Time of turns that went between its slices.
  int dropped = 0;
  bool lost = false;  // The device was, on the way.
};

class Executor {
 public:
  // Marks the tickets' calls as running and hands them over, in the same order.
  using OnStart = StepRunner::OnStart;
  // Takes the calls back; the device is free for the next batch, and the caller is the
  // device's thread.
  using OnFinish = absl::AnyInvocable<void(BatchResult)>;

  // The device is lost, and why; on its thread. Once.
  using OnLost = absl::AnyInvocable<void(const LaneDevice&)>;

  Executor(DeviceQueue& queue, LaneDevice device, OnStart on_start, OnFinish on_finish,
           StepRunner::OnStepped on_stepped, OnLost on_lost);
  // Stops at the next layer; batches not started are left in the queue.
  ~Executor();
  void Stop();

  // Runs `task` of a model on the device's thread, between two turns, and waits for it. Where it
  // pauses, others have as much of the time as it has; tasks that wait follow one another.
  // UNAVAILABLE if the executor stops first. Not to be called on the device's thread.
  absl::Status RunExclusive(std::string_view model, absl::AnyInvocable<absl::Status()> task);

  // Runs a short task on the device's thread, soon, and does not wait for it; on the caller's if
  // the executor has stopped.
  using Task = absl::AnyInvocable<void()>;
  void Post(Task task);

  // Used by the device's thread alone: posted tasks report failures here.
  LaneDevice& device() { return device_; }
  // Watches the current turn of the device's thread. Thread-safe.
  const TurnWatch& watch() const { return device_.watch(); }

 private:
  struct Exclusive {
    std::string model;
    absl::AnyInvocable<absl::Status()> task;
    std::optional<absl::Status> result;
  };

  void Loop();
  void RunNextExclusive();
  void RunPosted();
  void RunBatch(const Batch& batch);
  // Gives up the lane if its device is lost.
  void LoseDevice();
  // Runs the layers; false if it ended early because nobody waits any more.
  bool RunLayers(models::Run& run, BatchResult& result, std::vector<bool>& wanted);
  class Slices;
  // Runs the work that goes before the next slice of a batch.
  void LetOthersThrough(double slice_seconds);

  DeviceQueue& queue_;
  LaneDevice device_;
  bool given_up_ = false;  // The lane.
  OnStart on_start_;
  OnFinish on_finish_;
  OnLost on_lost_;
  StepRunner steps_;
  mutable absl::Mutex mutex_;  // Guards the lists of tasks; none runs under it.
  std::deque<Exclusive*> exclusives_ ABSL_GUARDED_BY(mutex_);  // Owned by waiting callers.
  std::vector<Task> posted_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longview::server
