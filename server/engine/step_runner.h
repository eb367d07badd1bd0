// Runs the turns of generating calls on a device's thread: starts and ends them, computes their
// steps, collects what came out.
//
// Owns nothing but the knowledge of which calls have started; their generations live in the calls
// and are destroyed here. All calls come from the device's thread.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "server/engine/engine_call.h"
#include "server/engine/lane_device.h"
#include "server/scheduler/device_queue.h"

namespace longview::server {

// One call's share of a turn.
struct StepShare {
  EngineCall* call = nullptr;
  int prefill = 0;    // Tokens of its prompt that were read.
  int sequences = 0;  // Sequences that took one token each.
  bool over = false;  // The call has ended and is to be freed.
  // The answer; unset while the call goes on, or if nobody waits for it.
  std::optional<absl::StatusOr<models::Answer>> answer;
  std::vector<models::Piece> pieces;
  double state_bytes = 0;  // Bytes of the document it read into.
};

struct StepResult {
  TurnKind kind = TurnKind::kStep;
  std::vector<StepShare> shares;
  absl::Time started;
  double seconds = 0;
  double prefill_seconds = 0;  // Predicted seconds of prefill; 0 if calls were dropped on the way.
  double decode_seconds = 0;   // Predicted seconds of decoding, likewise.
};

class StepRunner {
 public:
  // Marks the tickets' calls as running and hands them over, in the same order.
  using OnStart = absl::AnyInvocable<std::vector<EngineCall*>(const Batch&)>;
  // Takes the result; calls that are over are the engine's again.
  using OnStepped = absl::AnyInvocable<void(StepResult)>;

  // Borrows the queue and what is known of the device.
  StepRunner(DeviceQueue& queue, LaneDevice& device, OnStart on_start, OnStepped on_stepped)
      : queue_(queue),
        device_(device),
        on_start_(std::move(on_start)),
        on_stepped_(std::move(on_stepped)) {}

  // REQUIRES: the turn is a step or membership turn, and the queue's running one.
  void Run(const Batch& turn);

  // Ends all that have started with this answer; the queue is not told.
  void EndAll(const absl::Status& why);

 private:
  void RunMembership(const Batch& turn, StepResult& result);
  void RunStep(const Batch& turn, StepResult& result);
  // The layers of a step; false if nobody waits for the rest or the queue was stopped.
  bool RunLayers(models::Run& run, const Batch& turn, std::vector<bool>& wanted);
  StepShare StartCall(EngineCall& call);
  // Collects the output of a call whose step is done, or that has just started.
  void Collect(StepShare& share);
  // Destroys the call's generation and marks the share as over.
  void End(StepShare& share);

  DeviceQueue& queue_;
  LaneDevice& device_;
  OnStart on_start_;
  OnStepped on_stepped_;
  absl::flat_hash_map<TicketId, EngineCall*> live_;
};

}  // namespace longview::server
