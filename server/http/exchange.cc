#include "server/http/exchange.h"

#include <utility>

#include "server/http/error_body.h"

namespace longview::server {

Exchange::Exchange(HttpRequest request, CallInfo info, Deliver deliver)
    : request_(std::move(request)), info_(std::move(info)), deliver_(std::move(deliver)) {}

Exchange::~Exchange() {
  if (!answered_.load()) Fail(absl::InternalError("a handler gave no answer"));
}

void Exchange::Respond(HttpResponse response) {
  if (answered_.exchange(true)) return;
  {
    absl::MutexLock lock(&mutex_);
    cancel_ = nullptr;
  }
  response.held = std::move(held_);
  deliver_(std::move(response));
  deliver_ = nullptr;
}

void Exchange::Fail(const absl::Status& status) {
  Respond(ErrorResponse(status, ShapeOfPath(request_.path), info_.request_id));
}

void Exchange::GiveUp(const absl::Status& status) {
  absl::AnyInvocable<void()> cancel;
  {
    absl::MutexLock lock(&mutex_);
    cancel = std::exchange(cancel_, nullptr);
  }
  Fail(status);
  Cancel();
  if (cancel) cancel();
}

void Exchange::OnCancel(absl::AnyInvocable<void()> cancel) {
  {
    absl::MutexLock lock(&mutex_);
    if (!cancelled_) {
      if (!answered_.load()) cancel_ = std::move(cancel);
      return;
    }
  }
  cancel();
}

void Exchange::Cancel() {
  absl::AnyInvocable<void()> cancel;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    cancel = std::move(cancel_);
    cancel_ = nullptr;
  }
  if (cancel) cancel();
}

}  // namespace longview::server
