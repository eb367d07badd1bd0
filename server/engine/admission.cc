// How a call comes in: it is prepared, here or in the pool, and admitted or refused.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "models/status_macros.h"
#include "models/stop_scope.h"
#include "server/engine/engine.h"
#include "server/engine/engine_device.h"
#include "server/engine/refusals.h"
#include "server/engine/request_bytes.h"
#include "server/errors.h"
#include "server/exception_guard.h"
#include "server/lifecycle.h"
#include "server/security/client_quota.h"
#include "server/tracing/call_spans.h"

namespace longview::server {

using models::Request;

namespace {

// Whether a request is prepared on the caller's thread: token ids are only checked and copied, in
// less time than it takes to change threads.
bool IsCheap(const Request& request) {
  return request.tokens && !request.text && !request.text_pair && !request.question &&
         request.choices.empty() && request.choice_tokens.empty() && request.global_tokens.empty();
}

}  // namespace

CallId Engine::Submit(ModelHandle model, Request request, const CallInfo& info,
                      Reply<Completed> done) {
  auto call = std::make_unique<EngineCall>();
  call->info = info;
  call->model = std::move(model);
  call->done = std::move(done);
  call->generates = Generates(call->model->model->info(), request.task);
  return Accept(std::move(call), std::move(request));
}

void Engine::LimitTime(EngineCall& call) const {
  const bool asked = call.info.deadline != absl::InfiniteFuture();
  const absl::Duration limit =
      asked ? options_.max_timeout : std::min(options_.default_timeout, options_.max_timeout);
  const absl::Time latest = call.arrival() + limit;
  if (call.info.deadline <= latest) return;
  call.info.deadline = latest;
  call.deadline_imposed = true;
}

CallId Engine::Accept(CallPtr call, Request request) {
  DeviceQueue& queue = DevicesOf(*call->model).queue;
  const size_t bytes = call->bytes = RequestBytes(request);
  call->submitted = clock_.Now();
  LimitTime(*call);
  call->lane = LaneOf(request.document);
  if (request.extend_document) call->document = request.document;
  call->request = std::move(request);
  call->request.cache_space = call->info.cache_space;

  const auto refuse = [&](RejectReason reason, absl::Status status) {
    metrics_.Rejected(LabelsOf(*call->model), reason);
    EndLater(TakeEnding(*call), std::move(status));
    return CallId{0};
  };
  // A cheap request is prepared before any other thread knows the call.
  const bool cheap = IsCheap(call->request);
  const absl::Status prepared = cheap ? Prepare(*call) : absl::OkStatus();
  const size_t scratch = cheap ? 0 : PrepareScratch(call->request);
  absl::ReleasableMutexLock lock(&mutex_);
  if (stopped_ || !lifecycle_.accepting()) {
    lock.Release();
    return refuse(RejectReason::kDraining, ShuttingDownError());
  }
  const CallId id = call->id = ++last_id_;
  ModelUse& use = UseOf(call->model);
  if (!cheap) {
    const CostHistory& history = use.HistoryOf(call->generates);
    const double expected = history.Expected(bytes);
    const models::Cost cost = {.seconds = expected,
                               .prompt_seconds = expected * history.PromptShare()};
    Ticket ticket = TicketOf(id, *call->model, call->generates, call->info,
                             use.Paced(cost, call->generates, call->submitted), call->lane);
    ticket.firm = !call->deadline_imposed;
    const Admission admission = queue.Expect(ticket);
    if (admission.verdict != Verdict::kAdmitted) {
      lock.Release();
      return refuse(ReasonOf(admission.verdict), RefusalError(admission));
    }
    if (!pool_.Add({.id = id,
                    .client = call->info.client,
                    .deadline = call->info.deadline,
                    .bytes = bytes,
                    .scratch = scratch,
                    .run = [this, id](auto turn) { PreparePooled(id, turn); }})) {
      queue.Cancel(id);
      lock.Release();
      return refuse(RejectReason::kMemory, PoolFullError(bytes, pool_.limits().client_bytes));
    }
  }
  EngineCall& accepted = *calls_.emplace(id, std::move(call)).first->second;
  if (!cheap) return id;
  lock.Release();
  // The reference stays valid without the lock: until the call is admitted nobody else frees it.
  AdmitPrepared(accepted, prepared, Where::kCaller);
  return id;
}

void Engine::PreparePooled(CallId id, PreprocessPool::Turn turn) {
  EngineCall* call;
  {
    absl::ReleasableMutexLock lock(&mutex_);
    call = Find(id);
    if (turn == PreprocessPool::Turn::kStopped || call->done == nullptr) {
      DevicesOf(*call->model).queue.Cancel(id);
      const CallPtr freed = Free(id);
      lock.Release();
      if (freed->done) EndLater(TakeEnding(*freed), ShuttingDownError());
      return;
    }
  }
  const absl::Status admitted = Guarded([&] {
    AdmitPrepared(*call, Prepare(*call), Where::kPool);
    return absl::OkStatus();
  });
  if (admitted.ok()) return;
  // An exception may have left the call in any stage; whoever does not own it leaves it alone.
  EndEarly(id, admitted);
  absl::MutexLock lock(&mutex_);
  call = Find(id);
  if (call != nullptr && call->stage == CallStage::kPreparing) Free(id);
}

absl::Status Engine::Prepare(EngineCall& call) {
  const absl::Time start = clock_.Now();
  absl::Status status = Guarded([&]() -> absl::Status {
    const models::Model& model = InstanceOf(*call.model, call.lane);
    const models::StopScope scope(&call.unwanted);
    ASSIGN_OR_RETURN(std::unique_ptr<models::Item> item, model.Prepare(call.request));
    call.item = std::move(item);
    const models::Document* document = call.request.document.get();
    const int known = document == nullptr ? 0 : document->tokens();
    call.new_tokens = std::max(0, call.item->usage().input_tokens - known);
    if (call.on_prepared != nullptr) return call.on_prepared(call.item->cost());
    return absl::OkStatus();
  });
  call.request = Request();
  const absl::Time end = clock_.Now();
  call.prepare_seconds = absl::ToDoubleSeconds(end - start);
  if (CallSpans* const spans = call.info.spans.get()) {
    spans->Begin(CallPart::kPrepare, start);
    spans->End(CallPart::kPrepare, end);
  }
  metrics_.Computed(LabelsOf(*call.model), Phase::kPreprocess, call.prepare_seconds);
  return RefusalOrInternal(status);
}

Ticket Engine::PreparedTicket(const EngineCall& call) {
  const models::Cost cost =
      UseOf(call.model).Paced(call.item->cost(), call.generates, clock_.Now());
  Ticket ticket = TicketOf(call.id, *call.model, call.generates, call.info, cost, call.lane);
  ticket.firm = !call.deadline_imposed;
  return ticket;
}

void Engine::EnterQueue(EngineCall& call) {
  call.stage = CallStage::kQueued;
  call.group = nullptr;
  if (const int cut = call.item->usage().truncated_tokens; cut > 0) {
    metrics_.Truncated(LabelsOf(*call.model), cut);
  }
  if (call.info.spans != nullptr) call.info.spans->Begin(CallPart::kQueue, clock_.Now());
  if (call.info.quota != nullptr) {
    call.info.quota->Spend(call.new_tokens, std::chrono::steady_clock::now());
  }
  if (call.events != nullptr && call.events->on_admitted != nullptr) {
    replies_.Add([events = call.events.get()] { events->on_admitted(); });
  }
}

void Engine::EndAt(Where where, EngineCall& call, absl::Status why) {
  if (where == Where::kCaller) return EndLater(TakeEnding(call), std::move(why));
  End(TakeEnding(call), std::move(why));
}

void Engine::EndDisplaced(std::vector<CallPtr> displaced, const Admission& by, Where where) {
  const absl::Duration room = absl::Seconds(std::max(0.1, by.wait_seconds));
  for (CallPtr& call : displaced) {
    if (call == nullptr || call->done == nullptr) continue;
    metrics_.Rejected(LabelsOf(*call->model), RejectReason::kQueue);
    absl::Duration retry;
    {
      absl::MutexLock lock(&mutex_);
      retry = DevicesOf(*call->model).queue.ReturnDelay(PreparedTicket(*call), room);
    }
    EndAt(where, *call, DisplacedError(retry));
  }
}

void Engine::AdmitPrepared(EngineCall& call, absl::Status status, Where where) {
  if (call.group != nullptr) return GatherPrepared(call, std::move(status), where);
  const CallId id = call.id;
  DeviceQueue& queue = DevicesOf(*call.model).queue;
  CallPtr freed;
  std::vector<CallPtr> displaced;
  Admission admission;
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok() && call.done != nullptr) {
      if (where == Where::kPool) {
        const models::Cost& cost = call.item->cost();
        UseOf(call.model)
            .HistoryOf(call.generates)
            .Prepared(call.bytes, cost.seconds, cost.prompt_seconds);
      }
      admission = queue.Admit(PreparedTicket(call));
      if (admission.verdict == Verdict::kAdmitted) {
        EnterQueue(call);
        // Displaced calls are freed here even if another thread has answered them already.
        for (const TicketId other : admission.displaced) displaced.push_back(Free(other));
      } else {
        status = RefusalError(admission);
        metrics_.Rejected(LabelsOf(*call.model), ReasonOf(admission.verdict));
      }
    } else {
      queue.Cancel(id);
    }
    if (call.stage == CallStage::kPreparing) freed = Free(id);
  }
  if (freed && freed->done) EndAt(where, *freed, std::move(status));
  EndDisplaced(std::move(displaced), admission, where);
}

}  // namespace longview::server
