#include "server/api/api.h"

#include <utility>

#include "server/api/context.h"
#include "server/api/document_upload.h"
#include "server/api/embed.h"
#include "server/api/generate.h"
#include "server/api/generation_call.h"
#include "server/api/infer.h"
#include "server/api/infer_stream.h"
#include "server/api/metadata.h"
#include "server/api/model_service.h"
#include "server/api/repository.h"
#include "server/api/rerank.h"
#include "server/api/score.h"
#include "server/api/text_handlers.h"
#include "server/api/text_lists.h"
#include "server/tracing/tracer.h"

namespace longview::server {

using models::Task;

class Api::Impl {
 public:
  ApiContext context;
};

Api::Api(ModelStore& store, Engine& engine, Documents& documents, Lifecycle& lifecycle,
         Metrics& metrics, Log& log, ApiOptions options)
    : impl_(new Impl{ApiContext{store,
                                engine,
                                documents,
                                lifecycle,
                                {store, metrics, log},
                                metrics,
                                {},
                                std::move(options)}}) {}

Api::~Api() = default;

const ApiOptions& Api::options() const { return impl_->context.options; }
ModelStore& Api::store() const { return impl_->context.store; }

void Api::Trace(CallInfo& info) const {
  Tracer* const tracer = impl_->context.options.tracer;
  if (tracer != nullptr) tracer->Trace(info);
}

absl::Status Api::Record(const CallInfo& info, std::string_view model, std::string_view,
                         const absl::Status& status) {
  const CallRecorder& recorder = impl_->context.recorder;
  return recorder.Done(info, recorder.Labels(model), status, {});
}

void Api::Cancel(const Pending& call) {
  if (call != nullptr) call->Cancel();
}

Api::Pending Api::Classify(const CallInfo& info, const longview::v1::ClassifyRequest& request,
                           Reply<longview::v1::ClassifyResponse> reply) {
  return RunTextCall(impl_->context, info, Task::kTextClassification, request,
                     {request.top_k(), request.return_logits()}, std::move(reply));
}

Api::Pending Api::ClassifyTokens(const CallInfo& info,
                                 const longview::v1::ClassifyTokensRequest& request,
                                 Reply<longview::v1::ClassifyTokensResponse> reply) {
  return RunTextCall(impl_->context, info, Task::kTokenClassification, request,
                     {0, request.return_logits()}, std::move(reply));
}

Api::Pending Api::ClassifyList(const CallInfo& info,
                               ListRequest<longview::v1::ClassifyRequest> list,
                               ListReply<longview::v1::ClassifyResponse> reply) {
  return RunTextList(impl_->context, info, Task::kTextClassification, std::move(list),
                     std::move(reply));
}

Api::Pending Api::ClassifyTokensList(const CallInfo& info,
                                     ListRequest<longview::v1::ClassifyTokensRequest> list,
                                     ListReply<longview::v1::ClassifyTokensResponse> reply) {
  return RunTextList(impl_->context, info, Task::kTokenClassification, std::move(list),
                     std::move(reply));
}

Api::Pending Api::FillMaskList(const CallInfo& info,
                               ListRequest<longview::v1::FillMaskRequest> list,
                               ListReply<longview::v1::FillMaskResponse> reply) {
  return RunTextList(impl_->context, info, Task::kFillMask, std::move(list), std::move(reply));
}

Api::Pending Api::EmbedList(const CallInfo& info, ListRequest<longview::v1::EmbedRequest> list,
                            ListReply<longview::v1::EmbedResponse> reply) {
  return RunTextList(impl_->context, info, Task::kEmbedding, std::move(list), std::move(reply));
}

Api::Pending Api::Rerank(const CallInfo& info, const longview::v1::RerankRequest& request,
                         Reply<longview::v1::RerankResponse> reply) {
  return RunRerank(impl_->context, info, request, "documents", std::move(reply));
}

Api::Pending Api::RerankAs(const CallInfo& info, const longview::v1::RerankRequest& request,
                           std::string_view documents, Reply<longview::v1::RerankResponse> reply) {
  return RunRerank(impl_->context, info, request, documents, std::move(reply));
}

Api::Pending Api::Score(const CallInfo& info, const ScoreRequest& request,
                        Reply<ScoreAnswer> reply) {
  return RunScore(impl_->context, info, request, std::move(reply));
}

Api::Pending Api::AnswerQuestion(const CallInfo& info,
                                 const longview::v1::AnswerQuestionRequest& request,
                                 Reply<longview::v1::AnswerQuestionResponse> reply) {
  return RunTextCall(impl_->context, info, Task::kQuestionAnswering, request,
                     {0, request.return_logits()}, std::move(reply));
}

Api::Pending Api::FillMask(const CallInfo& info, const longview::v1::FillMaskRequest& request,
                           Reply<longview::v1::FillMaskResponse> reply) {
  return RunTextCall(impl_->context, info, Task::kFillMask, request, {0, request.return_logits()},
                     std::move(reply));
}

Api::Pending Api::Embed(const CallInfo& info, const longview::v1::EmbedRequest& request,
                        Reply<longview::v1::EmbedResponse> reply) {
  return RunEmbed(impl_->context, info, request, std::move(reply));
}

Api::Pending Api::ClassifyImage(const CallInfo& info,
                                const longview::v1::ClassifyImageRequest& request,
                                Reply<longview::v1::ClassifyResponse> reply) {
  return RunTextCall(impl_->context, info, Task::kImageClassification, request,
                     {request.top_k(), request.return_logits()}, std::move(reply));
}

Api::Pending Api::DetectObjects(const CallInfo& info,
                                const longview::v1::DetectObjectsRequest& request,
                                Reply<longview::v1::DetectObjectsResponse> reply) {
  return RunTextCall(impl_->context, info, Task::kObjectDetection, request, {}, std::move(reply));
}

Api::Pending Api::ExtractFeatures(const CallInfo& info,
                                  const longview::v1::ExtractFeaturesRequest& request,
                                  Reply<longview::v1::ExtractFeaturesResponse> reply) {
  return RunTextCall(impl_->context, info, Task::kImageFeatures, request, {}, std::move(reply));
}

Api::Pending Api::Estimate(const CallInfo& info, const longview::v1::EstimateRequest& request,
                           Reply<longview::v1::EstimateResponse> reply) {
  return RunEstimate(impl_->context, info, request, std::move(reply));
}

std::unique_ptr<GenerateStream> Api::Generate(const CallInfo& info,
                                              const longview::v1::GenerateRequest& request,
                                              absl::AnyInvocable<void()> on_ready) {
  return StartGenerate(impl_->context, info, request, std::move(on_ready));
}

std::shared_ptr<DocumentUpload> Api::OpenDocument(const CallInfo& info) {
  return std::make_shared<DocumentUpload>(impl_->context, info);
}

absl::StatusOr<longview::v1::Document> Api::CloseDocument(
    const CallInfo& info, const longview::v1::CloseDocumentRequest& request) {
  return longview::server::CloseDocument(impl_->context, info, request);
}

absl::StatusOr<ModelHandle> Api::FindGenerator(std::string_view name) {
  return longview::server::FindGenerator(impl_->context, name, "");
}

absl::StatusOr<ModelHandle> Api::FindTokenizer(std::string_view name) {
  return FindOnlyModel(impl_->context, name, "",
                       [](const models::ModelInfo& info) { return info.has_tokenizer; });
}

Api::Pending Api::RunGeneration(const CallInfo& info, GenerationJob job, GenerationSink sink) {
  return StartGeneration(impl_->context, info, std::move(job), std::move(sink));
}

absl::StatusOr<longview::v1::ListModelsResponse> Api::ListModels() const {
  longview::v1::ListModelsResponse out;
  for (const ModelStatus& status : store().List()) *out.add_models() = DescribeModel(status);
  return out;
}

absl::StatusOr<longview::v1::Model> Api::GetModel(
    const longview::v1::GetModelRequest& request) const {
  const auto status = FindStatus(store(), request.model(), request.version());
  if (!status.ok()) return status.status();
  return DescribeModel(*status);
}

namespace {

Reply<ModelStatus> Described(Reply<longview::v1::Model> reply) {
  return [reply = std::move(reply)](absl::StatusOr<ModelStatus> status) mutable {
    if (status.ok()) {
      reply(DescribeModel(*status));
    } else {
      reply(status.status());
    }
  };
}

}  // namespace

void Api::LoadModel(const CallInfo& info, const longview::v1::LoadModelRequest& request,
                    Reply<longview::v1::Model> reply) {
  LoadByName(impl_->context, info, request.model(), Described(std::move(reply)));
}

void Api::UnloadModel(const CallInfo& info, const longview::v1::UnloadModelRequest& request,
                      Reply<longview::v1::Model> reply) {
  UnloadByName(impl_->context, info, request.model(), Described(std::move(reply)));
}

Api::StateSubscription Api::SubscribeToStates(std::function<void()> changed) {
  return {impl_->context.lifecycle.changes().Subscribe(changed),
          store().changes().Subscribe(changed)};
}

std::string Api::NotLive() const { return impl_->context.engine.Stuck(); }

bool Api::ServerReady() const {
  return impl_->context.lifecycle.ready() && store().StartupComplete() &&
         impl_->context.engine.Able();
}

absl::StatusOr<bool> Api::ModelReady(std::string_view name, std::string_view version) const {
  const auto status = FindStatus(store(), name, version);
  if (!status.ok()) return status.status();
  return status->state == ModelState::kReady;
}

inference::ServerMetadataResponse Api::ServerMetadata() const {
  return MakeServerMetadata(options());
}

absl::StatusOr<inference::ModelMetadataResponse> Api::ModelMetadata(
    std::string_view name, std::string_view version) const {
  const auto model = store().Find(name, version);
  if (!model.ok()) return model.status();
  return MakeModelMetadata(**model, options());
}

absl::StatusOr<inference::ModelConfigResponse> Api::ModelConfig(std::string_view name,
                                                                std::string_view version) const {
  const auto model = store().Find(name, version);
  if (!model.ok()) return model.status();
  return MakeModelConfig(**model, options());
}

absl::StatusOr<inference::ModelStatisticsResponse> Api::ModelStatistics(
    std::string_view name, std::string_view version) const {
  inference::ModelStatisticsResponse out;
  if (!name.empty()) {
    const auto model = store().Find(name, version);
    if (!model.ok()) return model.status();
    *out.add_model_stats() = impl_->context.statistics.Get((*model)->name, (*model)->version);
    return out;
  }
  for (const ModelStatus& status : store().List()) {
    if (status.state != ModelState::kReady) continue;
    *out.add_model_stats() = impl_->context.statistics.Get(status.name, status.version);
  }
  return out;
}

inference::RepositoryIndexResponse Api::RepositoryIndex(bool ready_only) const {
  return MakeRepositoryIndex(store(), ready_only);
}

void Api::RepositoryModelLoad(const CallInfo& info,
                              const inference::RepositoryModelLoadRequest& request,
                              Reply<inference::RepositoryModelLoadResponse> reply) {
  RunRepositoryLoad(impl_->context, info, request, std::move(reply));
}

void Api::RepositoryModelUnload(const CallInfo& info,
                                const inference::RepositoryModelUnloadRequest& request,
                                Reply<inference::RepositoryModelUnloadResponse> reply) {
  RunRepositoryUnload(impl_->context, info, request, std::move(reply));
}

Api::Pending Api::Infer(const CallInfo& info, const inference::ModelInferRequest& request,
                        Reply<inference::ModelInferResponse> reply) {
  return RunInfer(impl_->context, info, request, std::move(reply));
}

std::unique_ptr<InferStream> Api::StreamInfer(const CallInfo& info,
                                              const inference::ModelInferRequest& request,
                                              absl::AnyInvocable<void()> on_ready) {
  return StartInferStream(impl_->context, info, request, std::move(on_ready));
}

}  // namespace longview::server
