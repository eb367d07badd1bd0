// Runs requests: prepares them on a pool, admits, queues, batches, computes, answers.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "models/model.h"
#include "server/call.h"
#include "server/served/model_store.h"

namespace longview::server {

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

// Thread-safe. Submit never blocks and never runs `done` inside itself.
class Engine {
 public:
  virtual ~Engine() = default;

  // One item. `done` gets the answer, or: INVALID_ARGUMENT / UNIMPLEMENTED (Prepare),
  // RESOURCE_EXHAUSTED with retry delay (queue, memory), DEADLINE_EXCEEDED, CANCELLED,
  // UNAVAILABLE (draining, or its device was lost).
  virtual CallId Submit(ModelHandle model, models::Request request, const CallInfo& info,
                        Reply<Completed> done) = 0;

  // Several items that are admitted as one, all or none, and then run each by itself; as Submit,
  // `done` one for one. After the first failure before that, the others end CANCELLED.
  // REQUIRES: none generates.
  virtual std::vector<CallId> SubmitTogether(ModelHandle model,
                                             std::vector<models::Request> requests,
                                             const CallInfo& info,
                                             std::vector<Reply<Completed>> done) = 0;

  // The same for a request that generates: pieces first, then the reply, whose answer holds
  // every sequence whole. Cancel takes effect at the next step.
  virtual CallId Generate(ModelHandle model, models::Request request, const CallInfo& info,
                          GenerationEvents events, Reply<Completed> done) = 0;

  // An empty document of the model, made on a device's thread, where it also ends whoever lets go
  // of it last. What it holds counts against that device's memory for generation state until then;
  // requests that read into it or continue it run there.
  virtual void NewDocument(ModelHandle model, Reply<std::shared_ptr<models::Document>> done) = 0;

  // Takes effect while queued and between layers. `done` still runs, with CANCELLED. Unknown
  // or finished ids are ignored.
  virtual void Cancel(CallId id) = 0;

  // Runs nothing; `request` set: prepared on the pool. Else `tokens` counts. The wait is that of
  // the caller. Ends as PlanChunks does.
  virtual void Estimate(ModelHandle model, std::optional<models::Request> request, int tokens,
                        const CallInfo& info, std::shared_ptr<const std::atomic<bool>> unwanted,
                        Reply<Estimated> done) = 0;

  // Runs nothing: a request for the chunks of a text as the items that answer it, prepared on the
  // pool. Ends with CANCELLED soon after `unwanted` was set, DEADLINE_EXCEEDED if its turn comes
  // too late.
  virtual void PlanChunks(ModelHandle model, models::Request request, const CallInfo& info,
                          std::shared_ptr<const std::atomic<bool>> unwanted,
                          Reply<models::ChunkPlan> done) = 0;

  // Predicted seconds of queued and running work.
  virtual double QueuedSeconds() const = 0;

  // Liveness: why the engine does not go on, or empty if it does. Work waits, the device is idle
  // and nothing was admitted for long; a model was given the device and does not come back; or it
  // is not Able: nothing but a new process gets a lost device back.
  virtual std::string Stuck() const = 0;

  // Readiness: false once some models have lost the last device that they are on.
  virtual bool Able() const = 0;
};

}  // namespace longview::server
