// The output of a generating call between the engine, which never waits, and a reader that may
// be slow: what waits is at most one piece for each sequence, and of all together a few megabytes.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/api/calls/answer_bytes.h"
#include "server/engine/engine.h"

namespace longview::server {

// How a generating call ended.
struct GenerationEnd {
  absl::Status status;               // The status the client is told.
  std::vector<Completed> completed;  // By item; empty unless ok.
  AnswerBytes held = {};             // For `completed`.
};

// The prompt of one item in front of its sequences, which share it, and its bytes, which count
// among the client's as long as it is there.
struct Echo {
  std::shared_ptr<const models::Piece> prompt;
  int first = 0;   // The sequences: `first` and those behind it.
  int copies = 1;  // Sequences of the item.
};

// Thread-safe.
class PieceFlow {
 public:
  // `on_ready` says that a Take which found nothing would find something. It runs on the
  // engine's threads, under no lock, and may come late: the reader may have taken that already.
  explicit PieceFlow(absl::AnyInvocable<void()> on_ready) : on_ready_(std::move(on_ready)) {}

  // The call is admitted: errors from here on are errors within its answer.
  void Admit();

  // The most that may wait, prompts not counted, which are the call's own: only a reader that does
  // not read is so far behind.
  static constexpr size_t kMostBytes = size_t{2} << 20;

  // Pieces of one sequence (`index`) join while they wait. They wait for Admit too: of several
  // items one may speak before another is refused.
  //
  // RESOURCE_EXHAUSTED if more than kMostBytes wait already: the call is to be ended.
  absl::Status Add(std::vector<models::Piece> pieces);

  // A prompt, before the pieces of its sequences.
  void AddEcho(Echo echo);

  // Once; what comes later is dropped. Pieces that wait are dropped too if the call failed.
  void End(GenerationEnd end);

  struct Output {
    bool admitted = false;
    std::vector<Echo> echoes;           // Before their sequences' pieces.
    std::vector<models::Piece> pieces;  // In the order in which their sequences spoke first.
    std::optional<GenerationEnd> end;   // Once, with the last pieces.

    bool empty() const { return !admitted && echoes.empty() && pieces.empty() && !end; }
  };
  // All there is since the last call. A sequence's end stays back until something follows, so
  // that the last piece of a call always comes with its end.
  Output Take();

 private:
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Awaited() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::AnyInvocable<void()> on_ready_;
  absl::Mutex mutex_;
  bool awaited_ ABSL_GUARDED_BY(mutex_) = true;  // The reader found nothing and waits.
  bool admitted_ ABSL_GUARDED_BY(mutex_) = false;
  bool news_ ABSL_GUARDED_BY(mutex_) = false;  // Admitted, and the reader has not been told yet.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Echo> echoes_ ABSL_GUARDED_BY(mutex_);
  std::vector<models::Piece> pieces_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Memory that `pieces_` takes.
  std::optional<GenerationEnd> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
