// A request inside the engine. Used by engine_impl and executor only.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "models/model.h"
#include "server/engine.h"

namespace longview::server {

// Who may free a call: the pool's job, the scheduler's queue or the executor. Whoever takes it
// out of its stage frees it; answering is separate, so that a client need not wait for that.
enum class CallStage { kPreparing, kQueued, kRunning };

// Fields are guarded by the engine's mutex unless their stage's owner alone uses them.
struct EngineCall {
  CallId id = 0;
  ModelHandle model;
  CallInfo info;
  absl::Time submitted;

  CallStage stage = CallStage::kPreparing;
  Reply<Completed> done;  // Null once answered.

  // Of the stage's owner.
  models::Request request;  // Until prepared.
  std::unique_ptr<models::Item> item;
  double prepare_seconds = 0;

  absl::Time arrival() const {
    return info.arrival == absl::InfinitePast() ? submitted : info.arrival;
  }
};

}  // namespace longview::server
