// A request inside the engine. Used by the engine and its executors only.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "models/model.h"
#include "server/engine/engine.h"

namespace longview::server {

// The owner of a call: the pool's job, the scheduler's queue or the executor. The one that takes
// it out of its stage frees it; answering is separate, so that a client need not wait for that.
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
  bool generates = false;         // In steps; else in a batch.
  bool tells_pieces = false;      // Somebody wants its output as it comes.
  int lane = -1;     // Where its document is, that it reads into or continues; -1 = none.
  size_t bytes = 0;  // The request's size as it came.

  CallStage stage = CallStage::kPreparing;
  std::shared_ptr<CallGroup> group;          // Null: it is admitted alone, or was admitted.
  Reply<Completed> done;                     // Null once answered.
  std::unique_ptr<GenerationEvents> events;  // Set for generating calls; null once answered.
  int64_t read_tokens = 0;                   // Prompt tokens read and tokens
  int64_t sampled_tokens = 0;                // sampled so far.
  size_t told_bytes = 0;                     // By GenerationEvents::on_grown.

  // Used by the stage's owner alone.
  models::Request request;                                            // Until prepared.
  absl::AnyInvocable<absl::Status(const models::Cost&)> on_prepared;  // May be null.
  std::atomic<bool> unwanted = false;  // It is answered: its preparation stops.
  std::unique_ptr<models::Item> item;
  double prepare_seconds = 0;
  int64_t new_tokens = 0;  // Input tokens, without those its document holds.

  // Used by the device's thread alone, while it generates.
  std::unique_ptr<models::Generation> generation;
  std::shared_ptr<models::Document> document;  // That it reads into; null = it answers with text.
  absl::Time started;
  absl::Time last_tokens = absl::InfinitePast();
  // Recent measured over predicted time of its model's steps: of tokens sampled and read.
  double pace = 1, read_pace = 1;
  double compute_seconds = 0;  // Sum over the steps it had part in.
  size_t most_items = 0;       // In one of these.
  bool streams = false;        // Pieces have left.

  absl::Time arrival() const {
    return info.arrival == absl::InfinitePast() ? submitted : info.arrival;
  }
};

}  // namespace longview::server
