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
  bool failed = false;  // A call of it has ended, so the others are not admitted any more.
};

// Fields are guarded by the engine's mutex unless their stage's owner alone uses them.
struct EngineCall {
  CallId id = 0;
  ModelHandle model;
  CallInfo info;
  absl::Time submitted;
  bool deadline_imposed = false;  // The server's bound; the caller's would be later, or is none.
  bool generates = false;         // Runs in generation steps; else in one batch.
  bool tells_pieces = false;      // Somebody wants its output as it comes.
  int lane = -1;     // Lane of the document that it reads into or continues; -1 = none.
  size_t bytes = 0;  // The request's size as it came.

  CallStage stage = CallStage::kPreparing;
  std::shared_ptr<CallGroup> group;          // Null: it is admitted alone, or was admitted.
  Reply<Completed> done;                     // Null once answered.
  std::unique_ptr<GenerationEvents> events;  // Set for generating calls; null once answered.
  int64_t read_tokens = 0;                   // Prompt tokens read so far.
  int64_t sampled_tokens = 0;                // Tokens sampled so far.
  size_t told_bytes = 0;                     // Last bytes that GenerationEvents::on_grown told.

  // Used by the stage's owner alone.
  models::Request request;                                            // Until prepared.
  absl::AnyInvocable<absl::Status(const models::Cost&)> on_prepared;  // May be null.
  std::atomic<bool> unwanted = false;  // Set once it is answered, so that its preparation stops.
  std::unique_ptr<models::Item> item;
  double prepare_seconds = 0;
  int64_t new_tokens = 0;  // Input tokens, without those its document holds.

  // Used by the device's thread alone, while it generates.
  std::unique_ptr<models::Generation> generation;
  std::shared_ptr<models::Document> document;  // Read into by the call; null: it answers with text.
  absl::Time started;
  absl::Time last_tokens = absl::InfinitePast();
  double pace = 1;             // Recent measured over predicted seconds of sampling tokens.
  double read_pace = 1;        // Recent measured over predicted seconds of reading tokens.
  double compute_seconds = 0;  // Sum over the steps it had part in.
  size_t most_items = 0;       // Most calls in one of these steps.
  bool streams = false;        // Pieces have left.

  absl::Time arrival() const {
    return info.arrival == absl::InfinitePast() ? submitted : info.arrival;
  }
};

}  // namespace longview::server
