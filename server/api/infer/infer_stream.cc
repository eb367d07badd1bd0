#include "server/api/infer/infer_stream.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/api/api.h"
#include "server/api/calls/generation_call.h"
#include "server/api/infer/infer.h"
#include "server/security/client_quota.h"

namespace longview::server {
namespace {

using inference::ModelInferResponse;
using inference::ModelStreamInferResponse;
using models::Piece;

void SetFinal(bool final, ModelInferResponse& response) {
  (*response.mutable_parameters())["triton_final_response"].set_bool_param(final);
}

ModelStreamInferResponse ErrorAnswer(const inference::ModelInferRequest& names,
                                     const absl::Status& status) {
  ModelStreamInferResponse out;
  out.set_error_message(std::string(status.message()));
  out.mutable_infer_response()->set_id(names.id());
  out.mutable_infer_response()->set_model_name(names.model_name());
  SetFinal(true, *out.mutable_infer_response());
  return out;
}

// Copies the parts of a request that its errors repeat.
inference::ModelInferRequest NamesOf(const inference::ModelInferRequest& request) {
  inference::ModelInferRequest names;
  names.set_id(request.id());
  names.set_model_name(request.model_name());
  return names;
}

// A request answered once.
class OneAnswer final : public InferStream {
 public:
  explicit OneAnswer(const inference::ModelInferRequest& request)
      : slot_(std::make_shared<Slot>()) {
    slot_->names = NamesOf(request);
  }

  Reply<ModelInferResponse> Replying(absl::AnyInvocable<void()> on_ready) {
    return [slot = slot_,
            on_ready = std::move(on_ready)](absl::StatusOr<ModelInferResponse> response) mutable {
      slot->Fill(std::move(response));
      on_ready();
    };
  }
  void SetPending(std::shared_ptr<PendingCall> pending) { pending_ = std::move(pending); }

  Next Take() override {
    absl::MutexLock lock(&slot_->mutex);
    if (!slot_->answer) return {};
    return {std::exchange(slot_->answer, std::nullopt), absl::OkStatus()};
  }
  void Cancel() override {
    if (pending_ != nullptr) pending_->Cancel();
  }

 private:
  struct Slot {
    void Fill(absl::StatusOr<ModelInferResponse> response) {
      absl::MutexLock lock(&mutex);
      if (!response.ok()) {
        answer = ErrorAnswer(names, response.status());
        return;
      }
      *answer.emplace().mutable_infer_response() = *std::move(response);
      SetFinal(true, *answer->mutable_infer_response());
    }

    inference::ModelInferRequest names;
    absl::Mutex mutex;
    std::optional<ModelStreamInferResponse> answer ABSL_GUARDED_BY(mutex);
  };

  const std::shared_ptr<Slot> slot_;
  std::shared_ptr<PendingCall> pending_;
};

// A generator's request.
class Pieces final : public InferStream {
 public:
  Pieces(ApiContext& context, const inference::ModelInferRequest& request,
         std::shared_ptr<PieceFlow> flow)
      : context_(context), names_(NamesOf(request)), flow_(std::move(flow)) {}

  void Start(const CallInfo& info, PreparedInfer prepared, bool default_outputs) {
    frame_ = std::move(prepared.frame);
    if (default_outputs) std::erase_if(frame_.plan.outputs, IsCount);
    GenerationJob job{frame_.model, std::move(prepared.items), &InTensorNames};
    pending_ = StartGeneration(context_, info, std::move(job), flow_);
  }

  Next Take() override {
    while (waiting_.empty() && !end_) {
      PieceFlow::Output out = flow_->Take();
      if (out.empty()) return {};
      for (const Echo& echo : out.echoes) {
        for (int i = 0; i < echo.copies; ++i) waiting_.push_back({{}, echo.prompt, echo.first + i});
      }
      for (Piece& piece : out.pieces) waiting_.push_back({std::move(piece), nullptr, 0});
      end_ = std::move(out.end);
    }
    Next next;
    if (!waiting_.empty()) {
      next.message = ToAnswer(Waited(std::move(waiting_.front())));
      waiting_.pop_front();
    } else if (end_->status.ok()) {
      next.message = ToAnswer({});
    }
    if (!waiting_.empty() || !end_) return next;
    if (!end_->status.ok() && next.message) return next;  // The error comes next.
    if (!end_->status.ok()) {
      next.message = ErrorAnswer(names_, end_->status);
    } else {
      AddTotals(TotalsOf(end_->completed), *next.message->mutable_infer_response());
      SetFinal(true, *next.message->mutable_infer_response());
    }
    next.end = absl::OkStatus();
    return next;
  }

  void Cancel() override {
    if (pending_ != nullptr) pending_->Cancel();
  }

 private:
  // The count of tokens in a piece is no output of a stream unless it is named.
  static bool IsCount(const PlannedOutput& output) { return output.kind == OutputKind::kNumTokens; }

  // A piece, or a prompt that sequences share until it is one's message.
  struct Waiting {
    Piece piece;
    std::shared_ptr<const Piece> prompt;  // Null: `piece` counts.
    int index = 0;                        // The sequence with the prompt.
  };

  static Piece Waited(Waiting waiting) {
    if (waiting.prompt == nullptr) return std::move(waiting.piece);
    Piece piece;
    piece.index = waiting.index;
    piece.text = waiting.prompt->text;
    piece.token_ids = waiting.prompt->token_ids;
    return piece;
  }

  ModelStreamInferResponse ToAnswer(Piece piece) const {
    const int index = piece.index;
    std::vector<models::Answer> answers(1);
    answers.front().sequences.push_back(std::move(piece));
    auto response = BuildInferResponse(context_, frame_, answers);
    if (!response.ok()) return ErrorAnswer(names_, response.status());
    ModelStreamInferResponse out;
    *out.mutable_infer_response() = *std::move(response);
    (*out.mutable_infer_response()->mutable_parameters())["sequence_index"].set_int64_param(index);
    SetFinal(false, *out.mutable_infer_response());
    return out;
  }

  ApiContext& context_;
  const inference::ModelInferRequest names_;
  const std::shared_ptr<PieceFlow> flow_;
  InferFrame frame_;
  std::shared_ptr<PendingCall> pending_;
  std::deque<Waiting> waiting_;
  std::optional<GenerationEnd> end_;
};

// Every request of a stream counts against its key's limits. A refusal has been recorded.
absl::Status TakePlace(ApiContext& context, const inference::ModelInferRequest& request,
                       CallInfo& info) {
  absl::StatusOr<std::shared_ptr<CallPermit>> permit = CallPermit::Get(info.quota);
  if (!permit.ok()) {
    return context.recorder.Done(info, context.recorder.Labels(request.model_name()),
                                 permit.status(), {});
  }
  info.permit = *std::move(permit);
  return absl::OkStatus();
}

}  // namespace

// Pieces carry the tensors of their new text, `sequence_index` (item x sequences + sample) and
// triton_final_response, which is true in the last answer only; that one also has the totals of
// ModelInfer. An error is the last answer: error_message with the request's id. The end of the
// stream is always OK.
//
// Each request has at least one answer that is not empty, and its last one is final: the empty
// final answers that triton_enable_empty_final_response asks for are never due.
//
// `on_ready` as PieceFlow's; it may run inside this call.
std::unique_ptr<InferStream> Api::StreamInfer(const CallInfo& info,
                                              const inference::ModelInferRequest& request,
                                              absl::AnyInvocable<void()> on_ready) {
  ApiContext& context = context_;
  CallInfo counted = info;
  absl::StatusOr<PreparedInfer> prepared = PreparedInfer();
  if (absl::Status placed = TakePlace(context, request, counted); placed.ok()) {
    prepared = FindAndPrepare(context, counted, request);
  } else {
    prepared = placed;
  }
  if (prepared.ok() && prepared->pieces) {
    auto pieces = std::make_unique<Pieces>(context, request,
                                           std::make_shared<PieceFlow>(std::move(on_ready)));
    const CallInfo timed = WithTimeout(counted, *prepared);
    pieces->Start(timed, *std::move(prepared), request.outputs().empty());
    return pieces;
  }
  auto one = std::make_unique<OneAnswer>(request);
  Reply<ModelInferResponse> reply = one->Replying(std::move(on_ready));
  if (!prepared.ok()) {
    reply(prepared.status());
    return one;
  }
  const CallInfo timed = WithTimeout(counted, *prepared);
  one->SetPending(RunPrepared(context, timed, *std::move(prepared), std::move(reply)));
  return one;
}

std::unique_ptr<InferStream> RefusedInferStream(const inference::ModelInferRequest& names,
                                                const absl::Status& status) {
  auto one = std::make_unique<OneAnswer>(names);
  one->Replying([] {})(status);
  return one;
}

}  // namespace longview::server
