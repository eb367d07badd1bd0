// The calls of both APIs, independent of the transport. gRPC and HTTP are thin shells
// around this: they parse into the protobuf request, call here, and send the response.
//
// Each call is defined in the file of its kind (embed.cc, infer.cc, generate.cc ...), not here.
//
// Nothing is computed here and nothing blocks; replies come from other threads, except
// that errors found at once may be replied inside the call. A request is read before the
// call returns and need not outlive it.
//
// Calls that take a CallInfo count themselves in the metrics and write their log line. For
// all others, and for requests refused before they get here, the transport calls Record.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "inference/grpc_service.pb.h"
#include "longview/v1/models.pb.h"
#include "longview/v1/text.pb.h"
#include "longview/v1/vision.pb.h"
#include "server/api/calls/answer_stream.h"
#include "server/api/calls/context.h"
#include "server/api/calls/list_answer.h"
#include "server/api/calls/score_answer.h"
#include "server/call.h"
#include "server/engine/documents.h"
#include "server/engine/engine.h"
#include "server/lifecycle.h"
#include "server/limits/byte_budget.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/served/model_store.h"

namespace longview::server {

// Holds what a call needs in order to be cancelled: all engine calls it started.
// Thread-safe; Cancel may come at any time, also before the call has submitted anything.
class PendingCall;

class DocumentUpload;  // server/api/typed/document_upload.h

// Thread-safe. Borrowed collaborators outlive it.
class Api {
 public:
  Api(ModelStore& store, Engine& engine, Documents& documents, Lifecycle& lifecycle,
      Metrics& metrics, Log& log, ApiOptions options);

  // Begins the trace of an admitted call, if it is to be traced. Before any other use of `info`.
  void Trace(CallInfo& info) const;

  // One metric sample and one log line. Returns the status to answer with: the given one, but
  // INTERNAL errors keep their story in the log and tell the client a request id only.
  absl::Status Record(const CallInfo& info, std::string_view model, std::string_view version,
                      const absl::Status& status);

  // ---- longview.v1. The returned handle cancels; dropping it does not. ----
  using Pending = std::shared_ptr<PendingCall>;
  static void Cancel(const Pending& call);

  Pending Classify(const CallInfo& info, const longview::v1::ClassifyRequest& request,
                   Reply<longview::v1::ClassifyResponse> reply);
  Pending ClassifyTokens(const CallInfo& info, const longview::v1::ClassifyTokensRequest& request,
                         Reply<longview::v1::ClassifyTokensResponse> reply);
  // Calls on a list of texts, each an item of its own.
  template <typename Response>
  using ListReply = Reply<ListAnswer<Response>>;
  Pending ClassifyList(const CallInfo& info, ListRequest<longview::v1::ClassifyRequest> list,
                       ListReply<longview::v1::ClassifyResponse> reply);
  Pending ClassifyTokensList(const CallInfo& info,
                             ListRequest<longview::v1::ClassifyTokensRequest> list,
                             ListReply<longview::v1::ClassifyTokensResponse> reply);
  Pending FillMaskList(const CallInfo& info, ListRequest<longview::v1::FillMaskRequest> list,
                       ListReply<longview::v1::FillMaskResponse> reply);
  Pending EmbedList(const CallInfo& info, ListRequest<longview::v1::EmbedRequest> list,
                    ListReply<longview::v1::EmbedResponse> reply);

  // `documents`: what the caller calls them in errors; static storage.
  Pending Rerank(const CallInfo& info, const longview::v1::RerankRequest& request,
                 Reply<longview::v1::RerankResponse> reply);
  Pending RerankAs(const CallInfo& info, const longview::v1::RerankRequest& request,
                   std::string_view documents, Reply<longview::v1::RerankResponse> reply);

  // Pairs of texts, of which nothing is sorted.
  Pending Score(const CallInfo& info, const ScoreRequest& request, Reply<ScoreAnswer> reply);

  Pending AnswerQuestion(const CallInfo& info, const longview::v1::AnswerQuestionRequest& request,
                         Reply<longview::v1::AnswerQuestionResponse> reply);
  Pending FillMask(const CallInfo& info, const longview::v1::FillMaskRequest& request,
                   Reply<longview::v1::FillMaskResponse> reply);
  Pending Embed(const CallInfo& info, const longview::v1::EmbedRequest& request,
                Reply<longview::v1::EmbedResponse> reply);
  Pending ClassifyImage(const CallInfo& info, const longview::v1::ClassifyImageRequest& request,
                        Reply<longview::v1::ClassifyResponse> reply);
  Pending DetectObjects(const CallInfo& info, const longview::v1::DetectObjectsRequest& request,
                        Reply<longview::v1::DetectObjectsResponse> reply);
  Pending ExtractFeatures(const CallInfo& info, const longview::v1::ExtractFeaturesRequest& request,
                          Reply<longview::v1::ExtractFeaturesResponse> reply);
  Pending Estimate(const CallInfo& info, const longview::v1::EstimateRequest& request,
                   Reply<longview::v1::EstimateResponse> reply);

  // Streaming calls. `on_ready` is PieceFlow's and may run inside the call. A stream that is
  // dropped before its end must be cancelled first.
  std::unique_ptr<GenerateStream> Generate(const CallInfo& info,
                                           const longview::v1::GenerateRequest& request,
                                           absl::AnyInvocable<void()> on_ready);
  std::shared_ptr<DocumentUpload> OpenDocument(const CallInfo& info);
  absl::StatusOr<longview::v1::Document> CloseDocument(
      const CallInfo& info, const longview::v1::CloseDocumentRequest& request);

  absl::StatusOr<longview::v1::ListModelsResponse> ListModels() const;
  absl::StatusOr<longview::v1::Model> GetModel(const longview::v1::GetModelRequest& request) const;
  void LoadModel(const CallInfo& info, const longview::v1::LoadModelRequest& request,
                 Reply<longview::v1::Model> reply);
  void UnloadModel(const CallInfo& info, const longview::v1::UnloadModelRequest& request,
                   Reply<longview::v1::Model> reply);

  // Hears of what may change ServerReady and ModelReady; `changed` runs on the thread that changes
  // it and must not block. What devices and disks do by themselves is not told.
  using StateSubscription = std::pair<ChangeSignal::Subscription, ChangeSignal::Subscription>;
  [[nodiscard]] StateSubscription SubscribeToStates(std::function<void()> changed);

  // ---- Open Inference Protocol ----
  // The event loops turn and waiting work is being admitted and computed.
  bool ServerLive() const { return NotLive().empty(); }
  std::string NotLive() const;  // Why not; empty: it is.
  bool ServerReady() const;     // Start-up models warm, not draining.
  // False for a model that is not ready, NOT_FOUND for an unknown one or another version.
  absl::StatusOr<bool> ModelReady(std::string_view name, std::string_view version) const;
  inference::ServerMetadataResponse ServerMetadata() const;
  absl::StatusOr<inference::ModelMetadataResponse> ModelMetadata(std::string_view name,
                                                                 std::string_view version) const;
  absl::StatusOr<inference::ModelConfigResponse> ModelConfig(std::string_view name,
                                                             std::string_view version) const;
  absl::StatusOr<inference::ModelStatisticsResponse> ModelStatistics(
      std::string_view name, std::string_view version) const;  // name "" = all
  inference::RepositoryIndexResponse RepositoryIndex(bool ready_only) const;
  void RepositoryModelLoad(const CallInfo& info,
                           const inference::RepositoryModelLoadRequest& request,
                           Reply<inference::RepositoryModelLoadResponse> reply);
  void RepositoryModelUnload(const CallInfo& info,
                             const inference::RepositoryModelUnloadRequest& request,
                             Reply<inference::RepositoryModelUnloadResponse> reply);
  // Typed contents in, typed contents out; raw in, raw out. Response parameters: queue_us,
  // compute_us, batch_items, truncated_tokens. Parameters that belong to HTTP alone
  // (binary_data and its kin) are the transport's and unknown here.
  Pending Infer(const CallInfo& info, const inference::ModelInferRequest& request,
                Reply<inference::ModelInferResponse> reply);
  // One request of ModelStreamInfer; on_ready as above.
  std::unique_ptr<InferStream> StreamInfer(const CallInfo& info,
                                           const inference::ModelInferRequest& request,
                                           absl::AnyInvocable<void()> on_ready);

  const ApiOptions& options() const { return context_.options; }
  // For APIs whose messages are no protobuf (OpenAI's): StartGeneration, FindOnlyModel.
  ApiContext& context() { return context_; }

 private:
  ModelStore& store() const { return context_.store; }

  ApiContext context_;
};

}  // namespace longview::server
