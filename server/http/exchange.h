// One HTTP request on its way to an answer: what a handler holds while the call runs.
//
// Thread-safe. The connection owns the socket; an exchange only knows how to hand it the
// answer, so it may outlive the connection.
#pragma once

#include <atomic>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/call.h"
#include "server/http/message.h"

namespace longview::server {

class Exchange {
 public:
  using Deliver = absl::AnyInvocable<void(HttpResponse)>;

  Exchange(HttpRequest request, CallInfo info, Deliver deliver);
  // A handler that lets go without an answer has a bug: answers 500.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return request_; }
  // The handler that runs may take the body's memory over.
  HttpRequest& mutable_request() { return request_; }
  const CallInfo& info() const { return info_; }
  // Before the handler runs: the router fills in the method.
  CallInfo& mutable_info() { return info_; }

  // Before Respond: bytes that the answer holds until it is out.
  void HoldAnswer(ByteBudget::Reservation held) { held_ = std::move(held); }

  // The first answer counts, later ones are dropped.
  void Respond(HttpResponse response);
  // An error body in the shape of the request's path.
  void Fail(const absl::Status& status);

  // Answers a call that is not answered yet with the error, and stops it.
  void GiveUp(const absl::Status& status);

  // Runs `cancel` once the client is gone, at once if it is already; at most one is kept.
  void OnCancel(absl::AnyInvocable<void()> cancel);
  void Cancel();

 private:
  HttpRequest request_;
  CallInfo info_;
  ByteBudget::Reservation held_;
  std::atomic<bool> answered_{false};
  Deliver deliver_;  // Used by whoever sets answered_.
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::AnyInvocable<void()> cancel_ ABSL_GUARDED_BY(mutex_);
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace longview::server
