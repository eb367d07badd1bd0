// The inference engine: prepares requests on a thread pool, admits, queues and batches them, runs
// the batches and generation steps on devices, and delivers the answers.
//
// Devices of a kind ("cuda:0", "cuda:1") are lanes of one queue; the CPU has its own. Each device
// has a thread (executor.h).
//
// A call is in one stage at a time and is freed by that stage's owner (engine_call.h). Whoever
// takes its `done` first answers it: the executor, a cancellation, a deadline or a refusal. Both
// happen under one mutex, so each exactly once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "models/model.h"
#include "server/call.h"
#include "server/engine/preprocess_pool.h"
#include "server/engine/task_thread.h"
#include "server/scheduler/scheduler_options.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/served/model_store.h"

namespace longview::server {

struct Admission;        // server/scheduler/ticket.h
struct Batch;            // likewise
struct Departure;        // likewise
struct Ticket;           // likewise
struct BatchResult;      // server/engine/executor.h
struct StepResult;       // server/engine/step_runner.h
struct CallGroup;        // server/engine/engine_call.h
struct EngineCall;       // likewise
class LaneDevice;        // server/engine/lane_device.h
class Lifecycle;         // server/lifecycle.h
class Metrics;           // server/metrics/metrics.h
struct ModelLabels;      // likewise
struct SchedulerGauges;  // likewise

// An answered item with where its time went.
struct Completed {
  models::Answer answer;
  double queue_seconds = 0;
  double compute_seconds = 0;
  double total_seconds = 0;
  int batch_items = 0;
  double state_bytes = 0;  // Bytes held by the document that was read into.
};

// Callbacks of a generating call before its reply; any may be null. Must not block. All but the
// first run on the reply thread, in order, never after `done`.
struct GenerationEvents {
  // Once its cost is known, on whatever thread prepares it; an error is as one of Prepare.
  absl::AnyInvocable<absl::Status(const models::Cost&)> on_prepared;
  absl::AnyInvocable<void()> on_admitted;  // Once.
  absl::AnyInvocable<void(std::vector<models::Piece>)> on_pieces;
  // Bytes that the model holds of the answer's tokens so far, whenever they have grown by 64 KiB.
  absl::AnyInvocable<void(size_t bytes)> on_grown;
};

struct Estimated {
  models::Cost cost;
  models::ItemUsage usage;
  double queue_seconds = 0;  // Work in front of it now.
  bool fits = true;
  std::string reason;
};

struct EngineOptions {
  std::vector<std::string> devices = {"cpu"};  // ModelInfo::device names; one executor each.
  SchedulerOptions scheduler;  // Applies to each kind of device; its lanes are counted here.
  // Called on a device's thread when the device is lost, and why.
  std::function<void(const std::string& device, const std::string& why)> on_lost;
  int prepare_threads = 3;
  PreprocessLimits prepare = {};
  // How long work may wait for an idle device before the engine counts as stuck.
  absl::Duration stall_patience = absl::Seconds(10);
  // A turn is stuck once no layer of it came back for watch_factor times its predicted seconds plus
  // watch_floor.
  double watch_factor = 10;
  absl::Duration watch_floor = absl::Seconds(60);  // See watch_factor.
  // Time-out of calls without a deadline, since their arrival.
  absl::Duration default_timeout = absl::InfiniteDuration();
  // Longest time-out of any call, since its arrival.
  absl::Duration max_timeout = absl::InfiniteDuration();
};

// Thread-safe. Submit never blocks and never runs `done` inside itself.
class Engine {
 public:
  // Borrows its collaborators. Registers itself for the scheduler's gauges.
  Engine(const EngineOptions& options, const Lifecycle& lifecycle, Metrics& metrics);
  ~Engine();

  // One item. `done` gets the answer, or: INVALID_ARGUMENT / UNIMPLEMENTED (Prepare),
  // RESOURCE_EXHAUSTED with retry delay (queue, memory), DEADLINE_EXCEEDED, CANCELLED,
  // UNAVAILABLE (draining, or its device was lost).
  CallId Submit(ModelHandle model, models::Request request, const CallInfo& info,
                Reply<Completed> done);

  // Several items that are admitted as one, all or none, and then run each by itself; as Submit,
  // `done` one for one. After the first failure before that, the others end CANCELLED.
  // REQUIRES: none generates.
  std::vector<CallId> SubmitTogether(ModelHandle model, std::vector<models::Request> requests,
                                     const CallInfo& info, std::vector<Reply<Completed>> done);

  // Submits a request that generates: pieces come first, then the reply, whose answer holds every
  // sequence whole. Cancel takes effect at the next step.
  CallId Generate(ModelHandle model, models::Request request, const CallInfo& info,
                  GenerationEvents events, Reply<Completed> done);

  // Makes an empty document of the model on a device's thread, which also frees it once its last
  // owner lets go. Until then it counts against that device's memory for generation state, and
  // requests that read into it or continue it run there.
  void NewDocument(ModelHandle model, Reply<std::shared_ptr<models::Document>> done);

  // Takes effect while queued and between layers. `done` still runs, with CANCELLED. Unknown
  // or finished ids are ignored.
  void Cancel(CallId id);

  // Runs nothing; `request` set: prepared on the pool. Else `tokens` counts. The wait is that of
  // the caller. Ends as PlanChunks does.
  void Estimate(ModelHandle model, std::optional<models::Request> request, int tokens,
                const CallInfo& info, std::shared_ptr<const std::atomic<bool>> unwanted,
                Reply<Estimated> done);

  // Runs nothing: a request for the chunks of a text as the items that answer it, prepared on the
  // pool. Ends with CANCELLED soon after `unwanted` was set, DEADLINE_EXCEEDED if its turn comes
  // too late.
  void PlanChunks(ModelHandle model, models::Request request, const CallInfo& info,
                  std::shared_ptr<const std::atomic<bool>> unwanted, Reply<models::ChunkPlan> done);

  // Predicted seconds of queued and running work.
  double QueuedSeconds() const;

  // Liveness: why the engine does not go on, or empty if it does. Work waits, the device is idle
  // and nothing was admitted for long; a model was given the device and does not come back; or it
  // is not Able: nothing but a new process gets a lost device back.
  std::string Stuck() const;

  // Readiness: false once some models have lost the last device that they are on.
  bool Able() const;

  // The devices in the order of the options.
  const std::vector<std::string>& devices() const { return options_.devices; }
  // The lanes of the device's queue that are not lost, its own included.
  std::vector<std::string> DevicesLike(std::string_view device) const;

  // Runs `task` of a model on the thread of the device while nothing else runs there, and waits.
  // For Model::WarmUp. UNAVAILABLE if the engine stops first.
  absl::Status RunOnDevice(std::string_view device, std::string_view model,
                           absl::AnyInvocable<absl::Status()> task);

  // Waits until no call is left; false if some are at `until`.
  bool AwaitIdle(absl::Time until);

  // Answers what is left with UNAVAILABLE, joins the threads. Once it returns, no event and no
  // reply of a call submitted before runs any more. Calls submitted from here on are refused.
  // Idempotent; the destructor does it. Not to be called in a reply.
  void Shutdown();

  // Calls that have not been freed; for tests of what is left behind.
  size_t calls() const;
  // Calls that are admitted and in no batch yet; for tests of which calls share a batch.
  size_t waiting() const;

 private:
  struct Lane;
  struct Devices;
  struct DocumentEnd;
  struct ModelUse;
  using CallPtr = std::unique_ptr<EngineCall>;

  Devices& DevicesOf(const ServedModel& model) const;
  // The group of devices with one of that name; the first group if there is none.
  Devices& DevicesWith(std::string_view name) const;
  Lane& LaneNamed(std::string_view name) const;
  // The lane of a document that this engine made; -1 = none.
  static int LaneOf(const std::shared_ptr<models::Document>& document);
  // The instance that knows what the call continues.
  models::Model& InstanceOf(const ServedModel& model, int lane) const;

  // How a call ends: whoever takes it answers, once.
  struct Ending {
    Reply<Completed> done;
    std::unique_ptr<GenerationEvents> events;  // Kept until `done` has run.
    explicit operator bool() const { return done != nullptr; }
  };
  static Ending TakeEnding(EngineCall& call);  // Under mutex_.
  // Answers on the reply thread.
  void EndLater(Ending ending, absl::StatusOr<Completed> result);
  // Answers here, unless the call generates: its answer comes after its pieces.
  void End(Ending ending, absl::StatusOr<Completed> result);

  CallId Accept(std::unique_ptr<EngineCall> call, models::Request request);
  // Puts the options' bounds on a call's time.
  void LimitTime(EngineCall& call) const;
  ModelUse& UseOf(const ModelHandle& model) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the call its model's pace: recent measured over predicted time of steps.
  void SetPace(EngineCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The steps of a call. `Where` is the thread they run on: on the caller's, replies may not run
  // inside them.
  enum class Where { kCaller, kPool };
  void PreparePooled(CallId id, PreprocessPool::Turn turn);
  absl::Status Prepare(EngineCall& call);
  void AdmitPrepared(EngineCall& call, absl::Status prepared, Where where);
  Ticket PreparedTicket(const EngineCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves an admitted call to the stage kQueued.
  void EnterQueue(EngineCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndDisplaced(std::vector<CallPtr> displaced, const Admission& by, Where where);
  void EndAt(Where where, EngineCall& call, absl::Status why);
  // AdmitPrepared for a call of a group: the last one to be prepared admits all.
  void GatherPrepared(EngineCall& call, absl::Status prepared, Where where);
  // Ends a group one of whose calls has ended, and takes out the calls that wait for it.
  std::vector<CallPtr> Break(CallGroup& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<EngineCall*> Start(const Batch& batch);
  // `more`: the device has something else to do.
  void Finish(BatchResult result, bool more);
  void RecordBatch(const BatchResult& result);
  void Step(StepResult result);
  void RecordStep(const StepResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The bytes that GenerationEvents::on_grown is to tell of the call now; 0: none.
  static size_t GrownBytes(EngineCall& call);
  // Ends a call that is not over with `why`.
  void EndEarly(CallId id, absl::Status why);
  void Depart(Devices& devices, std::span<const Departure> departures);
  void Lose(const LaneDevice& device);
  void Answer(std::vector<std::pair<Reply<Completed>, absl::StatusOr<Completed>>> answers,
              bool inline_allowed);

  CallPtr Free(CallId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  EngineCall* Find(CallId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs `job` with the request on the pool; instead of it, with no request and why, where the pool
  // has no room or stops.
  using PoolJob = absl::AnyInvocable<void(absl::StatusOr<models::Request>)>;
  void OnPool(models::Request request, const std::string& client, absl::Time deadline, PoolJob job);
  // The estimate for a cost at the present queue; `asker` is the client whose turn it would be.
  Estimated Judged(const ModelHandle& model, bool generates, int lane, const CallInfo& asker,
                   const models::Cost& cost, const models::ItemUsage& usage);
  SchedulerGauges GaugesOf(const ModelLabels& labels) const;

  const EngineOptions options_;
  const Lifecycle& lifecycle_;
  Metrics& metrics_;
  const SteadyClock clock_;

  // Taken before a queue's or the pool's own lock, never after. No callback runs under it.
  mutable absl::Mutex mutex_;
  SteadyCondVar idle_;
  absl::flat_hash_map<CallId, CallPtr> calls_ ABSL_GUARDED_BY(mutex_);
  // Use of each model, by its id; entries of unloaded models go when another is first used.
  std::map<uint32_t, std::unique_ptr<ModelUse>> models_ ABSL_GUARDED_BY(mutex_);
  CallId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  absl::Mutex shutdown_mutex_;  // One Shutdown at a time.
  TaskThread replies_;
  PreprocessPool pool_;
  std::vector<std::unique_ptr<Devices>> devices_;  // By kind, in the order of the options.
};

}  // namespace longview::server
