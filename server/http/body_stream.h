// A body that is made while it is sent.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace longview::server {

// Used by one connection; `wake` runs on other threads. Destroyed before its end: nobody reads it
// any more.
class BodyStream {
 public:
  virtual ~BodyStream() = default;

  // Once, before the first Take. `wake` says that a Take which found nothing would find something.
  virtual void Listen(absl::AnyInvocable<void()> wake) = 0;

  struct Part {
    std::string data;   // Empty: nothing is ready.
    bool last = false;  // The body ends behind it.
  };
  virtual Part Take() = 0;

  // Ends the body early: what Take gives next is the error, in the body's own form, and the last.
  virtual void End(const absl::Status& status) = 0;

  // Bytes sent where nothing has been ready for long, so that proxies and clients keep waiting;
  // they must mean nothing to the reader.
  virtual std::string Filler() const = 0;
};

}  // namespace longview::server
