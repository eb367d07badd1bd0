// The answers of a streaming call, taken by the transport at the pace of its client.
#pragma once

#include <optional>

#include "absl/status/status.h"

namespace longview::server {

template <typename Message>
class AnswerStream {
 public:
  struct Next {
    std::optional<Message> message;   // Unset: nothing is ready.
    std::optional<absl::Status> end;  // Once: no message follows this one.
  };

  virtual ~AnswerStream() = default;

  // One reader at a time. Where it finds nothing, the call's `on_ready` runs when there is more.
  virtual Next Take() = 0;

  // Thread-safe, at any time. The stream still ends, with CANCELLED or what came first.
  virtual void Cancel() = 0;
};

}  // namespace longview::server
