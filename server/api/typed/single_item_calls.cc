#include "server/api/typed/single_item_calls.h"

#include "server/api/api.h"

#include <memory>
#include <utility>

#include "server/api/calls/call_totals.h"
#include "server/api/calls/pending_call.h"
#include "server/api/typed/generate_requests.h"

namespace longview::server {
namespace {

longview::v1::EstimateResponse ToResponse(const Estimated& estimated) {
  longview::v1::EstimateResponse out;
  out.set_seconds(estimated.cost.seconds);
  out.set_queue_seconds(estimated.queue_seconds);
  out.set_state_bytes(estimated.cost.state_bytes);
  out.set_workspace_bytes(estimated.cost.workspace_bytes);
  out.set_multiply_adds(estimated.cost.multiply_adds);
  out.set_fits(estimated.fits);
  out.set_reason(estimated.reason);
  *out.mutable_usage() = ToUsage(estimated.usage);
  return out;
}

}  // namespace

Api::Pending Api::Estimate(const CallInfo& info, const longview::v1::EstimateRequest& proto,
                           Reply<longview::v1::EstimateResponse> reply) {
  ApiContext& context = context_;
  absl::StatusOr<ModelHandle> model = FindOnlyModel(context, proto.model(), proto.version());
  if (!model.ok()) {
    reply(context.recorder.Done(info, context.recorder.Labels(proto.model()), model.status(), {}));
    return nullptr;
  }
  const ModelLabels labels{(*model)->name, (*model)->version};
  absl::StatusOr<EstimateSubject> subject = ToEstimateSubject(proto, (*model)->model->info());
  if (!subject.ok()) {
    reply(context.recorder.Done(info, labels, subject.status(), {}));
    return nullptr;
  }
  auto pending = std::make_shared<PendingCall>(context.engine);
  pending->Estimate(
      *std::move(model), std::move(subject->request), subject->tokens, info,
      [&context, info, labels, reply = std::move(reply)](absl::StatusOr<Estimated> result) mutable {
        const absl::Status named = WithParam(InTypedNames(result.status(), 0, 1));
        const absl::Status status = context.recorder.Done(info, labels, named, {});
        if (status.ok()) {
          reply(ToResponse(*result));
        } else {
          reply(status);
        }
      });
  return pending;
}

Api::Pending Api::Classify(const CallInfo& info, const longview::v1::ClassifyRequest& request,
                           Reply<longview::v1::ClassifyResponse> reply) {
  return RunTypedCall(context_, info, models::Task::kTextClassification, request,
                      {request.top_k(), request.return_logits()}, std::move(reply));
}

Api::Pending Api::ClassifyTokens(const CallInfo& info,
                                 const longview::v1::ClassifyTokensRequest& request,
                                 Reply<longview::v1::ClassifyTokensResponse> reply) {
  return RunTypedCall(context_, info, models::Task::kTokenClassification, request,
                      {0, request.return_logits()}, std::move(reply));
}

Api::Pending Api::AnswerQuestion(const CallInfo& info,
                                 const longview::v1::AnswerQuestionRequest& request,
                                 Reply<longview::v1::AnswerQuestionResponse> reply) {
  return RunTypedCall(context_, info, models::Task::kQuestionAnswering, request,
                      {0, request.return_logits()}, std::move(reply));
}

Api::Pending Api::FillMask(const CallInfo& info, const longview::v1::FillMaskRequest& request,
                           Reply<longview::v1::FillMaskResponse> reply) {
  return RunTypedCall(context_, info, models::Task::kFillMask, request,
                      {0, request.return_logits()}, std::move(reply));
}

Api::Pending Api::ClassifyImage(const CallInfo& info,
                                const longview::v1::ClassifyImageRequest& request,
                                Reply<longview::v1::ClassifyResponse> reply) {
  return RunTypedCall(context_, info, models::Task::kImageClassification, request,
                      {request.top_k(), request.return_logits()}, std::move(reply));
}

Api::Pending Api::DetectObjects(const CallInfo& info,
                                const longview::v1::DetectObjectsRequest& request,
                                Reply<longview::v1::DetectObjectsResponse> reply) {
  return RunTypedCall(context_, info, models::Task::kObjectDetection, request, {},
                      std::move(reply));
}

Api::Pending Api::ExtractFeatures(const CallInfo& info,
                                  const longview::v1::ExtractFeaturesRequest& request,
                                  Reply<longview::v1::ExtractFeaturesResponse> reply) {
  return RunTypedCall(context_, info, models::Task::kImageFeatures, request, {}, std::move(reply));
}

}  // namespace longview::server
