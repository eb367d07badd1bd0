// Calls that generate: what their steps bring, and the documents they read.
#include <chrono>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "server/engine/engine.h"
#include "server/engine/engine_device.h"
#include "server/engine/refusals.h"
#include "server/exception_guard.h"
#include "server/security/client_quota.h"
#include "server/tracing/call_spans.h"

namespace longview::server {

using models::Document;

CallId Engine::Generate(ModelHandle model, models::Request request, const CallInfo& info,
                        GenerationEvents events, Reply<Completed> done) {
  auto call = std::make_unique<EngineCall>();
  call->info = info;
  call->model = std::move(model);
  call->done = std::move(done);
  call->on_prepared = std::exchange(events.on_prepared, nullptr);
  call->tells_pieces = events.on_pieces != nullptr;
  call->events = std::make_unique<GenerationEvents>(std::move(events));
  call->generates = Generates(call->model->model->info(), request.task);
  if (!call->generates) {
    EndLater(TakeEnding(*call), absl::UnimplementedError("the model does not generate"));
    return 0;
  }
  return Accept(std::move(call), std::move(request));
}

void Engine::RecordStep(const StepResult& result) {
  const ModelLabels labels = LabelsOf(*result.shares.front().call->model);
  if (result.kind == TurnKind::kMembership) {
    for (const StepShare& share : result.shares) {
      const EngineCall& call = *share.call;
      if (share.over && !share.answer) continue;
      const double waited = absl::ToDoubleSeconds(call.started - call.submitted);
      if (call.generation) {
        metrics_.Queued(LabelsOf(*call.model), std::max(0.0, waited - call.prepare_seconds));
      }
    }
    return;
  }
  StepNumbers numbers;
  const absl::Time now = result.started + absl::Seconds(result.seconds);
  for (const StepShare& share : result.shares) {
    EngineCall& call = *share.call;
    numbers.tokens += share.prefill > 0 ? share.prefill : share.sequences;
    call.read_tokens += share.prefill;
    call.compute_seconds += result.seconds;
    call.most_items = std::max(call.most_items, result.shares.size());
    if (share.sequences == 0 || call.document != nullptr) continue;
    if (share.answer && share.answer->ok() && (*share.answer)->usage.output_tokens == 0) continue;
    call.sampled_tokens += share.sequences;
    numbers.generated += share.sequences;
    if (call.info.quota != nullptr) {
      call.info.quota->Spend(share.sequences, std::chrono::steady_clock::now());
    }
    if (call.last_tokens == absl::InfinitePast()) {
      numbers.first_tokens.push_back(absl::ToDoubleSeconds(now - call.arrival()));
    } else {
      const double gap = absl::ToDoubleSeconds(now - call.last_tokens);
      numbers.gaps.insert(numbers.gaps.end(), static_cast<size_t>(share.sequences), gap);
    }
    call.last_tokens = now;
  }
  numbers.items = static_cast<int>(result.shares.size());
  const double predicted = result.prefill_seconds + result.decode_seconds;
  if (predicted > 0) {
    EngineCall& first = *result.shares.front().call;
    const double sampling = result.decode_seconds + first.model->model->StepSeconds();
    numbers.predicted_seconds = result.prefill_seconds * first.read_pace + sampling * first.pace;
    UseOf(first.model).steps.Computed(result.prefill_seconds, sampling, result.seconds, now);
    for (const StepShare& share : result.shares) SetPace(*share.call);
    numbers.prefill_seconds = result.seconds * result.prefill_seconds / predicted;
    numbers.decode_seconds = result.seconds * result.decode_seconds / predicted;
  }
  numbers.seconds = result.seconds;
  metrics_.Stepped(labels, numbers);
}

size_t Engine::GrownBytes(EngineCall& call) {
  // Growth is told in steps, since each costs a trip through the reply thread.
  constexpr size_t kWorthTelling = 64 << 10;
  if (call.events == nullptr || call.events->on_grown == nullptr || call.item == nullptr) return 0;
  const auto bytes =
      static_cast<size_t>(static_cast<double>(call.sampled_tokens) * call.item->cost().token_bytes);
  if (bytes < call.told_bytes + kWorthTelling) return 0;
  return call.told_bytes = bytes;
}

void Engine::Step(StepResult result) {
  struct Pieces {
    CallId id;
    GenerationEvents* events;
    std::vector<models::Piece> pieces;
    size_t grown = 0;  // Bytes that on_grown tells; 0: none.
  };
  std::vector<Pieces> news;
  std::vector<std::pair<Ending, absl::StatusOr<Completed>>> endings;
  std::vector<CallPtr> freed;
  absl::MutexLock lock(&mutex_);
  RecordStep(result);
  const absl::Time now = clock_.Now();
  for (StepShare& share : result.shares) {
    EngineCall& call = *share.call;
    if (CallSpans* const spans = call.info.spans.get()) {
      const bool speaks = call.tells_pieces ? !share.pieces.empty() : share.sequences > 0;
      if (speaks && !std::exchange(call.streams, true)) {
        spans->Begin(CallPart::kStream, now);  // Until the call is over.
      }
      if (share.over) spans->End(CallPart::kCompute, now);
    }
    const size_t grown = GrownBytes(call);
    if (call.done != nullptr && call.events != nullptr && (!share.pieces.empty() || grown > 0)) {
      news.push_back({call.id, call.events.get(), std::move(share.pieces), grown});
    }
    if (!share.over) continue;
    if (call.done != nullptr) {
      const ModelLabels labels = LabelsOf(*call.model);
      // No answer: a thread dropped the call for its deadline and has not come to answer it yet.
      const bool late = !share.answer;
      if (late) share.answer = LateError(call, /*was_running=*/true);
      absl::StatusOr<Completed> completed = Completed();
      if (share.answer->ok()) {
        const models::ItemUsage& usage = (*share.answer)->usage;
        metrics_.Tokens(labels, "prompt", usage.input_tokens);
        metrics_.Tokens(labels, "cached", usage.cached_tokens);
        const double waited = absl::ToDoubleSeconds(call.started - call.submitted);
        completed = Completed{.answer = **std::move(share.answer),
                              .queue_seconds = std::max(0.0, waited - call.prepare_seconds),
                              .compute_seconds = call.compute_seconds,
                              .total_seconds = absl::ToDoubleSeconds(now - call.arrival()),
                              .batch_items = static_cast<int>(call.most_items),
                              .state_bytes = share.state_bytes};
      } else {
        completed = share.answer->status();
        metrics_.WastedTokens(labels, late ? "deadline" : "error",
                              call.read_tokens + call.sampled_tokens);
      }
      endings.emplace_back(TakeEnding(call), std::move(completed));
    }
    freed.push_back(Free(call.id));
  }
  if (news.empty() && endings.empty()) return;
  // Added under the lock, so that no piece of a call comes after its answer: a cancellation adds
  // that answer under the same lock.
  replies_.Add([this, news = std::move(news), endings = std::move(endings)]() mutable {
    for (Pieces& some : news) {
      const absl::Status told = Guarded([&] {
        if (some.grown > 0) some.events->on_grown(some.grown);
        if (!some.pieces.empty()) some.events->on_pieces(std::move(some.pieces));
        return absl::OkStatus();
      });
      if (!told.ok()) EndEarly(some.id, told);
    }
    for (auto& [ending, completed] : endings) Deliver(ending.done, std::move(completed));
  });
}

int Engine::LaneOf(const std::shared_ptr<Document>& document) {
  const DocumentEnd* end = std::get_deleter<DocumentEnd>(document);
  return end == nullptr ? -1 : end->lane->number;
}

void Engine::NewDocument(ModelHandle model, Reply<std::shared_ptr<Document>> done) {
  Devices& devices = DevicesOf(*model);
  const std::optional<int> number = devices.queue.OpenDocument();
  if (!number) {
    replies_.Add([done = std::move(done)]() mutable { done(DevicesLostError()); });
    return;
  }
  Lane& lane = *devices.lanes[static_cast<size_t>(*number)];
  lane.executor.Post(
      [this, &devices, &lane, model = std::move(model), done = std::move(done)]() mutable {
        absl::StatusOr<std::shared_ptr<Document>> made =
            Guarded([&] { return model->On(lane.name).NewDocument(); });
        if (made.ok()) {
          Document* const raw = made->get();
          made = std::shared_ptr<Document>(
              raw, DocumentEnd{&devices, &lane, std::move(model), *std::move(made)});
        } else {
          made = lane.executor.device().CheckLost(made.status());
          devices.queue.CloseDocument(/*key=*/0, lane.number);
        }
        replies_.Add(
            [made = std::move(made), done = std::move(done)]() mutable { done(std::move(made)); });
      });
}

}  // namespace longview::server
