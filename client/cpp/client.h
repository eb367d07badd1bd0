// Typed calls of longview.v1 with a deadline and repetition of refused calls.
//
//   auto channel = OpenChannel({.server = "localhost:9000"});
//   Client client(*channel, {.timeout_seconds = 20});
//   v1::ClassifyRequest request;
//   request.set_text(document);
//   v1::ClassifyResponse response;
//   grpc::Status status = client.Classify(request, &response);
//
// Thread-safe: any number of threads may call at once.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "client/cpp/retry_policy.h"
#include "longview/v1/models.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "longview/v1/vision.grpc.pb.h"

namespace longview::client {

namespace v1 = ::longview::v1;

struct ClientOptions {
  double timeout_seconds = 60;  // Limit of a call with all its retries; 0 = none.
  std::string api_key = "";     // Sent as `authorization: Bearer <key>`; empty = none.
  RetryPolicy retry = {};
  // Waits before a repetition; empty = really sleep. Tests record instead.
  std::function<void(double seconds)> sleep = nullptr;
};

// Adds the key and, if seconds > 0, the deadline to a call.
void Prepare(grpc::ClientContext& context, const std::string& api_key, double seconds);

class Client {
 public:
  Client(std::shared_ptr<grpc::ChannelInterface> channel, ClientOptions options);

  grpc::Status Classify(const v1::ClassifyRequest& request, v1::ClassifyResponse* response) const;
  grpc::Status ClassifyTokens(const v1::ClassifyTokensRequest& request,
                              v1::ClassifyTokensResponse* response) const;
  grpc::Status AnswerQuestion(const v1::AnswerQuestionRequest& request,
                              v1::AnswerQuestionResponse* response) const;
  grpc::Status FillMask(const v1::FillMaskRequest& request, v1::FillMaskResponse* response) const;
  grpc::Status Embed(const v1::EmbedRequest& request, v1::EmbedResponse* response) const;
  grpc::Status Rerank(const v1::RerankRequest& request, v1::RerankResponse* response) const;

  grpc::Status ClassifyImage(const v1::ClassifyImageRequest& request,
                             v1::ClassifyResponse* response) const;
  grpc::Status DetectObjects(const v1::DetectObjectsRequest& request,
                             v1::DetectObjectsResponse* response) const;
  grpc::Status ExtractFeatures(const v1::ExtractFeaturesRequest& request,
                               v1::ExtractFeaturesResponse* response) const;

  // Streams: `on_message` gets every message as it comes and says whether to go on; if not, the
  // call is cancelled. Repeated like the others, but only before the first message.
  using OnMessage = std::function<bool(const v1::GenerateResponse& message)>;
  grpc::Status Generate(const v1::GenerateRequest& request, const OnMessage& on_message) const;

  // Sends what `next` fills in until it returns false. Not repeated: parts are given once.
  using NextPart = std::function<bool(v1::OpenDocumentRequest* part)>;
  grpc::Status OpenDocument(const NextPart& next, v1::Document* document) const;
  grpc::Status CloseDocument(const v1::CloseDocumentRequest& request, v1::Document* document) const;

  grpc::Status ListModels(v1::ListModelsResponse* response) const;
  grpc::Status GetModel(const v1::GetModelRequest& request, v1::Model* response) const;
  grpc::Status LoadModel(const v1::LoadModelRequest& request, v1::Model* response) const;
  grpc::Status UnloadModel(const v1::UnloadModelRequest& request, v1::Model* response) const;
  grpc::Status Estimate(const v1::EstimateRequest& request, v1::EstimateResponse* response) const;

 private:
  // One call: fills the response or says why not.
  using Attempt = std::function<grpc::Status(grpc::ClientContext*)>;
  grpc::Status CallWithRetries(const Attempt& attempt) const;

  ClientOptions options_;
  std::unique_ptr<v1::TextService::Stub> text_;
  std::unique_ptr<v1::VisionService::Stub> vision_;
  std::unique_ptr<v1::ModelService::Stub> models_;
};

}  // namespace longview::client
