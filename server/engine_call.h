// A request inside the engine. Used by engine_impl and executor only.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "models/model.h"
#include "server/engine.h"

namespace longview::server {

// Who may free a call: the pool's job, the scheduler's queue or the executor. Whoever takes it
// out of its stage frees it; answering is separate, so that a client need not wait for that.
enum class CallStage {
  kPreparing,
  kGathered,  // Prepared, and waiting for the others of its group.
  kQueued,
  kRunning,
};

// Calls that are admitted together. Guarded by the engine's mutex.
struct CallGroup {
  size_t size = 0;
  std::vector<CallId> gathered;
  bool failed = false;  // One has ended: the others are not admitted any more.
};

// Fields are guarded by the engine's mutex unless their stage's owner alone uses them.
struct EngineCall {
  CallId id = 0;
  ModelHandle model;
  CallInfo info;
  absl::Time submitted;
  bool deadline_imposed = false;  // The server's bound; the caller's would be later, or is none.
  bool generates = false;  // In steps; else in a batch.
  int lane = -1;           // Where its document is, that it reads into or continues; -1 = none.
  size_t bytes = 0;        // Of the request, as it came.

  CallStage stage = CallStage::kPreparing;
  std::shared_ptr<CallGroup> group;          // Null: it is admitted alone, or was admitted.
  Reply<Completed> done;                     // Null once answered.
  std::unique_ptr<GenerationEvents> events;  // Of a generating call; null once answered.
  int64_t read_tokens = 0;                   // Of its prompt,
  int64_t sampled_tokens = 0;                // and sampled, so far.

  // Of the stage's owner.
  models::Request request;  // Until prepared.
  std::atomic<bool> unwanted = false;  // It is answered: its preparation stops.
  std::unique_ptr<models::Item> item;
  double prepare_seconds = 0;
  int64_t new_tokens = 0;  // Of its input, without what its document holds.

  // Of the device's thread, while it generates.
  std::unique_ptr<models::Generation> generation;
  std::shared_ptr<models::Document> document;  // That it reads into; null = it answers with text.
  absl::Time started;
  absl::Time last_tokens = absl::InfinitePast();
  double pace = 1;             // Of its model's steps over what is predicted, of late.
  double compute_seconds = 0;  // Of the steps it had part in.
  size_t most_items = 0;       // In one of these.
  bool streams = false;        // Pieces have left.

  absl::Time arrival() const {
    return info.arrival == absl::InfinitePast() ? submitted : info.arrival;
  }
};

}  // namespace longview::server
