// The tickets that a call has running in the engine, so that it can be cancelled.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/engine.h"

namespace longview::server {

// Thread-safe. `engine` outlives it.
class PendingCall {
 public:
  explicit PendingCall(Engine& engine) : engine_(engine) {}

  // Engine::Submit; answers CANCELLED at once, inside the call, after Cancel.
  void Submit(ModelHandle model, models::Request request, const CallInfo& info,
              Reply<Completed> done);

  // Engine::SubmitTogether, likewise.
  void SubmitTogether(ModelHandle model, std::vector<models::Request> requests,
                      const CallInfo& info, std::vector<Reply<Completed>> done);

  // Engine::PlanChunks, likewise.
  void PlanChunks(ModelHandle model, models::Request request, const CallInfo& info,
                  Reply<models::ChunkPlan> done);

  // Engine::Estimate, likewise.
  void Estimate(ModelHandle model, std::optional<models::Request> request, int tokens,
                const CallInfo& info, Reply<Estimated> done);

  // Engine::Generate, likewise.
  void Generate(ModelHandle model, models::Request request, const CallInfo& info,
                GenerationEvents events, Reply<Completed> done);

  // Cancels everything submitted so far and refuses what comes later.
  void Cancel();

 private:
  // Runs `submit` unless the call is cancelled; what it started is cancelled with the call.
  void Start(absl::FunctionRef<CallId(Reply<Completed>)> submit, Reply<Completed> done);
  bool Add(CallId id);

  Engine& engine_;
  const std::shared_ptr<std::atomic<bool>> unwanted_ = std::make_shared<std::atomic<bool>>(false);
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<CallId> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
