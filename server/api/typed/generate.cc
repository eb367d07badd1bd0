#include "models/status_macros.h"
#include "server/api/api.h"

#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/calls/call_totals.h"
#include "server/api/calls/generation_call.h"
#include "server/api/typed/generate_requests.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using longview::v1::GenerateResponse;
using models::Piece;

class Stream final : public GenerateStream {
 public:
  Stream(ApiContext& context, std::shared_ptr<PieceFlow> flow)
      : context_(context), flow_(std::move(flow)) {}

  void Refuse(const absl::Status& status) { flow_->End({status, {}}); }

  void Start(const CallInfo& info, GenerationJob job, bool collect) {
    model_ = job.model;
    collect_ = collect;
    pending_ = collect ? CollectGeneration(
                             context_, info, std::move(job),
                             [flow = flow_](GenerationEnd end) { flow->End(std::move(end)); })
                       : StartGeneration(context_, info, std::move(job), flow_);
  }

  Next Take() override {
    while (waiting_.empty() && !end_) {
      PieceFlow::Output out = flow_->Take();
      if (out.empty()) return {};
      for (const Echo& echo : out.echoes) {
        for (int i = 0; i < echo.copies; ++i) Wait({}, echo.prompt).piece.index = echo.first + i;
      }
      for (Piece& piece : out.pieces) Wait(std::move(piece));
      end_ = std::move(out.end);
      if (end_ && end_->status.ok()) AddLast();
    }
    Next next;
    if (!waiting_.empty()) {
      next.message = ToMessage(waiting_.front());
      waiting_.pop_front();
    }
    if (end_ && waiting_.empty()) {
      next.end = end_->status;
      if (next.message && end_->status.ok()) AddTotals(*next.message);
    }
    return next;
  }

  void Cancel() override {
    if (pending_ != nullptr) pending_->Cancel();
  }

 private:
  // A piece, and the prompt to put in front: sequences share it until they are messages.
  struct Waiting {
    Piece piece;
    std::shared_ptr<const Piece> prompt;  // Null: none.
  };

  Waiting& Wait(Piece piece, std::shared_ptr<const Piece> prompt = nullptr) {
    return waiting_.emplace_back(std::move(piece), std::move(prompt));
  }

  // Adds the last piece: everything if the call collects, else an empty piece that carries usage
  // and timing.
  void AddLast() {
    models::Answer& answer = end_->completed.front().answer;
    if (collect_) {
      std::shared_ptr<const Piece> prompt;
      if (answer.prompt) prompt = std::make_shared<const Piece>(*std::move(answer.prompt));
      for (Piece& piece : answer.sequences) Wait(std::move(piece), prompt);
      if (waiting_.empty() && prompt != nullptr) Wait({}, prompt);
    }
    if (waiting_.empty()) Wait({});
  }

  GenerateResponse ToMessage(const Waiting& waiting) {
    GenerateResponse out;
    out.set_model(model_->name);
    out.set_version(model_->version);
    out.set_index(waiting.piece.index);
    out.set_number(number_++);
    for (const Piece* piece : {waiting.prompt.get(), &waiting.piece}) {
      if (piece == nullptr) continue;
      out.mutable_text()->append(piece->text);
      out.mutable_token_ids()->Add(piece->token_ids.begin(), piece->token_ids.end());
      for (const models::TokenLogprob& token : piece->logprobs) out.add_logprobs(token.logprob);
    }
    out.set_finish_reason(waiting.piece.finish_reason);
    return out;
  }

  void AddTotals(GenerateResponse& out) const {
    const CallTotals totals = TotalsOf(end_->completed);
    *out.mutable_usage() = ToUsage(totals.usage);
    *out.mutable_timing() = ToTiming(totals);
  }

  ApiContext& context_;
  const std::shared_ptr<PieceFlow> flow_;
  ModelHandle model_;
  bool collect_ = false;
  std::shared_ptr<PendingCall> pending_;
  std::deque<Waiting> waiting_;
  std::optional<GenerationEnd> end_;
  int number_ = 0;
};

// The model of a call and what it continues.
absl::StatusOr<DocumentUse> FindStart(ApiContext& context, const CallInfo& info,
                                      const longview::v1::GenerateRequest& proto) {
  DocumentUse use;
  if (!proto.document().empty()) {
    absl::StatusOr<DocumentUse> open = context.documents.Use(proto.document(), info.client);
    if (!open.ok()) return open;
    use = *std::move(open);
    if (!proto.model().empty() && proto.model() != use.model->name) {
      return BadField("model", absl::StrCat(Quoted(proto.model()), " did not read the document; ",
                                            Quoted(use.model->name), " did"));
    }
  }
  ASSIGN_OR_RETURN(ModelHandle model,
                   FindGenerator(context, use.model == nullptr ? proto.model() : use.model->name,
                                 proto.version()));
  if (use.model == nullptr) use.model = std::move(model);
  return use;
}

}  // namespace

std::unique_ptr<GenerateStream> Api::Generate(const CallInfo& info,
                                              const longview::v1::GenerateRequest& proto,
                                              absl::AnyInvocable<void()> on_ready) {
  ApiContext& context = context_;
  auto stream = std::make_unique<Stream>(context, std::make_shared<PieceFlow>(std::move(on_ready)));
  const auto refuse = [&](const absl::Status& status, const ModelLabels& labels) {
    stream->Refuse(context.recorder.Done(info, labels, status, {}));
    return std::move(stream);
  };
  absl::StatusOr<DocumentUse> start = FindStart(context, info, proto);
  if (!start.ok()) return refuse(start.status(), context.recorder.Labels(proto.model()));
  const ModelHandle model = std::move(start->model);
  absl::StatusOr<models::Request> request = ToModelRequest(proto, model->model->info());
  if (!request.ok()) return refuse(request.status(), {model->name, model->version});
  request->document = std::move(start->document);
  GenerationJob job{model, {}, &InTypedNames};
  job.items.push_back(*std::move(request));
  stream->Start(info, std::move(job), proto.collect());
  return stream;
}

}  // namespace longview::server
