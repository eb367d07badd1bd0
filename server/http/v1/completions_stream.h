// The server-sent events of a streamed completion.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/api/api.h"
#include "server/api/calls/piece_flow.h"
#include "server/http/body_stream.h"
#include "server/http/exchange.h"
#include "server/http/v1/completions_format.h"

namespace longview::server {

// One streamed call: answers its exchange when the call is admitted, or with an error if that
// comes first; from then on it is the body. One `data:` line per piece, then the usage if it is
// wanted, then [DONE]; an error is one such line too, and the end. Long lines are written part by
// part.
//
// Thread-safe. Kept alive by its exchange until that is answered, then by the answer's body.
class CompletionsStream : public std::enable_shared_from_this<CompletionsStream> {
 public:
  static std::shared_ptr<CompletionsStream> Make(ExchangePtr exchange, CompletionNames names,
                                                 bool include_usage);

  // The flow that takes the engine's output, and the handle that stops it.
  const std::shared_ptr<PieceFlow>& flow() const { return flow_; }
  void SetPending(Api::Pending pending);
  void Cancel();

 private:
  class Body;

  CompletionsStream(ExchangePtr exchange, CompletionNames names, bool include_usage);

  // The flow has something: an answer for the exchange, or more for the body's reader.
  void Ready();

  // The body's.
  void Listen(absl::AnyInvocable<void()> wake);
  BodyStream::Part Take();
  void End(const absl::Status& status);
  // Begins the next event, or the end of all. False: nothing is ready.
  bool Begin(BodyStream::Part* part);
  // Writes on at the event that was begun.
  void Continue(BodyStream::Part* part);
  void AppendEnd(const GenerationEnd& end, BodyStream::Part* part);
  void AppendError(const absl::Status& status, BodyStream::Part* part);

  const CompletionNames names_;
  const bool include_usage_;
  std::shared_ptr<PieceFlow> flow_;
  std::string head_;                    // Beginning of every event, up to its choices.
  std::map<int, TextOffsets> offsets_;  // By choice. The body's.
  PieceFlow::Output first_;             // Taken to answer the exchange; then the body's.
  // Pieces that were taken and are not written yet, the body's. Sequences share a prompt.
  struct Event {
    models::Piece piece;
    std::shared_ptr<const models::Piece> prompt;  // Null: `piece` counts.
    int index = 0;
  };
  std::deque<Event> events_;
  std::optional<ChoiceWriter> writer_;  // The front event is begun.
  std::optional<GenerationEnd> end_;
  absl::Status early_;  // Ends the body in place of what is not written.

  absl::Mutex mutex_;
  ExchangePtr exchange_ ABSL_GUARDED_BY(mutex_);  // Null once it is answered.
  absl::AnyInvocable<void()> wake_ ABSL_GUARDED_BY(mutex_);
  Api::Pending pending_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace longview::server
