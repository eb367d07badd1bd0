#include "server/api/calls/pending_call.h"

#include <utility>

#include "server/errors.h"

namespace longview::server {

void PendingCall::Submit(ModelHandle model, models::Request request, const CallInfo& info,
                         Reply<Completed> done) {
  Start(
      [&](Reply<Completed> reply) {
        return engine_.Submit(std::move(model), std::move(request), info, std::move(reply));
      },
      std::move(done));
}

void PendingCall::SubmitTogether(ModelHandle model, std::vector<models::Request> requests,
                                 const CallInfo& info, std::vector<Reply<Completed>> done) {
  if (!Add(0)) {
    for (Reply<Completed>& reply : done) {
      reply(MakeError(absl::StatusCode::kCancelled, "the client cancelled the call",
                      {.reason = "CANCELLED"}));
    }
    return;
  }
  for (const CallId id :
       engine_.SubmitTogether(std::move(model), std::move(requests), info, std::move(done))) {
    if (!Add(id)) engine_.Cancel(id);
  }
}

void PendingCall::PlanChunks(ModelHandle model, models::Request request, const CallInfo& info,
                             Reply<models::ChunkPlan> done) {
  engine_.PlanChunks(std::move(model), std::move(request), info, unwanted_, std::move(done));
}

void PendingCall::Estimate(ModelHandle model, std::optional<models::Request> request, int tokens,
                           const CallInfo& info, Reply<Estimated> done) {
  engine_.Estimate(std::move(model), std::move(request), tokens, info, unwanted_, std::move(done));
}

void PendingCall::Generate(ModelHandle model, models::Request request, const CallInfo& info,
                           GenerationEvents events, Reply<Completed> done) {
  Start(
      [&](Reply<Completed> reply) {
        return engine_.Generate(std::move(model), std::move(request), info, std::move(events),
                                std::move(reply));
      },
      std::move(done));
}

void PendingCall::Start(absl::FunctionRef<CallId(Reply<Completed>)> submit, Reply<Completed> done) {
  if (!Add(0)) {
    done(MakeError(absl::StatusCode::kCancelled, "the client cancelled the call",
                   {.reason = "CANCELLED"}));
    return;
  }
  const CallId id = submit(std::move(done));
  // Cancel may have come between the two: it did not see this id.
  if (!Add(id)) engine_.Cancel(id);
}

void PendingCall::Cancel() {
  unwanted_->store(true, std::memory_order_relaxed);
  std::vector<CallId> calls;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    calls.swap(calls_);
  }
  for (const CallId id : calls) engine_.Cancel(id);
}

bool PendingCall::Add(CallId id) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_) return false;
  if (id != 0) calls_.push_back(id);
  return true;
}

}  // namespace longview::server
