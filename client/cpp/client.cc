#include "client/cpp/client.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <utility>

namespace longview::client {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::microseconds Microseconds(double seconds) {
  return std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
}

double UniformRandom() {
  thread_local std::mt19937 generator(std::random_device{}());
  return std::uniform_real_distribution<double>(0.0, 1.0)(generator);
}

}  // namespace

void Prepare(grpc::ClientContext& context, const std::string& api_key, double seconds) {
  if (!api_key.empty()) context.AddMetadata("authorization", "Bearer " + api_key);
  if (seconds > 0) context.set_deadline(std::chrono::system_clock::now() + Microseconds(seconds));
}

Client::Client(std::shared_ptr<grpc::ChannelInterface> channel, ClientOptions options)
    : options_(std::move(options)),
      text_(v1::TextService::NewStub(channel)),
      vision_(v1::VisionService::NewStub(channel)),
      models_(v1::ModelService::NewStub(channel)) {
  if (!options_.sleep) {
    options_.sleep = [](double seconds) { std::this_thread::sleep_for(Microseconds(seconds)); };
  }
}

grpc::Status Client::CallWithRetries(const Attempt& attempt) const {
  const bool bounded = options_.timeout_seconds > 0;
  const Clock::time_point deadline = Clock::now() + Microseconds(options_.timeout_seconds);
  for (int attempts = 1;; ++attempts) {
    const double left = bounded ? std::chrono::duration<double>(deadline - Clock::now()).count()
                                : std::numeric_limits<double>::infinity();
    grpc::ClientContext context;
    Prepare(context, options_.api_key, bounded ? std::max(left, 1e-6) : 0);
    const grpc::Status status = attempt(&context);
    if (status.ok()) return status;
    const double still_left = bounded
                                  ? std::chrono::duration<double>(deadline - Clock::now()).count()
                                  : std::numeric_limits<double>::infinity();
    const std::optional<double> delay =
        NextDelay(options_.retry, status, attempts, UniformRandom(), still_left);
    if (!delay) return status;
    options_.sleep(*delay);
  }
}

grpc::Status Client::Classify(const v1::ClassifyRequest& request,
                              v1::ClassifyResponse* response) const {
  return CallWithRetries(
      [&](auto* context) { return text_->Classify(context, request, response); });
}

grpc::Status Client::ClassifyTokens(const v1::ClassifyTokensRequest& request,
                                    v1::ClassifyTokensResponse* response) const {
  return CallWithRetries(
      [&](auto* context) { return text_->ClassifyTokens(context, request, response); });
}

grpc::Status Client::AnswerQuestion(const v1::AnswerQuestionRequest& request,
                                    v1::AnswerQuestionResponse* response) const {
  return CallWithRetries(
      [&](auto* context) { return text_->AnswerQuestion(context, request, response); });
}

grpc::Status Client::FillMask(const v1::FillMaskRequest& request,
                              v1::FillMaskResponse* response) const {
  return CallWithRetries(
      [&](auto* context) { return text_->FillMask(context, request, response); });
}

grpc::Status Client::Embed(const v1::EmbedRequest& request, v1::EmbedResponse* response) const {
  return CallWithRetries([&](auto* context) { return text_->Embed(context, request, response); });
}

grpc::Status Client::Rerank(const v1::RerankRequest& request, v1::RerankResponse* response) const {
  return CallWithRetries([&](auto* context) { return text_->Rerank(context, request, response); });
}

grpc::Status Client::ClassifyImage(const v1::ClassifyImageRequest& request,
                                   v1::ClassifyResponse* response) const {
  return CallWithRetries(
      [&](auto* context) { return vision_->ClassifyImage(context, request, response); });
}

grpc::Status Client::DetectObjects(const v1::DetectObjectsRequest& request,
                                   v1::DetectObjectsResponse* response) const {
  return CallWithRetries(
      [&](auto* context) { return vision_->DetectObjects(context, request, response); });
}

grpc::Status Client::ExtractFeatures(const v1::ExtractFeaturesRequest& request,
                                     v1::ExtractFeaturesResponse* response) const {
  return CallWithRetries(
      [&](auto* context) { return vision_->ExtractFeatures(context, request, response); });
}

grpc::Status Client::Generate(const v1::GenerateRequest& request,
                              const OnMessage& on_message) const {
  bool any = false;
  grpc::Status after_first;
  const grpc::Status status = CallWithRetries([&](grpc::ClientContext* context) {
    const auto reader = text_->Generate(context, request);
    v1::GenerateResponse message;
    while (reader->Read(&message)) {
      any = true;
      if (!on_message(message)) context->TryCancel();
    }
    const grpc::Status ended = reader->Finish();
    // Pieces already seen cannot be taken back: such an end is final, whatever it says.
    if (!any) return ended;
    after_first = ended;
    return grpc::Status::OK;
  });
  return any ? after_first : status;
}

grpc::Status Client::OpenDocument(const NextPart& next, v1::Document* document) const {
  grpc::ClientContext context;
  Prepare(context, options_.api_key, options_.timeout_seconds);
  const auto writer = text_->OpenDocument(&context, document);
  v1::OpenDocumentRequest part;
  while (next(&part)) {
    if (!writer->Write(part)) break;  // The status says why.
    part.Clear();
  }
  writer->WritesDone();
  return writer->Finish();
}

grpc::Status Client::CloseDocument(const v1::CloseDocumentRequest& request,
                                   v1::Document* document) const {
  return CallWithRetries(
      [&](auto* context) { return text_->CloseDocument(context, request, document); });
}

grpc::Status Client::ListModels(v1::ListModelsResponse* response) const {
  return CallWithRetries([&](auto* context) { return models_->ListModels(context, {}, response); });
}

grpc::Status Client::GetModel(const v1::GetModelRequest& request, v1::Model* response) const {
  return CallWithRetries(
      [&](auto* context) { return models_->GetModel(context, request, response); });
}

grpc::Status Client::LoadModel(const v1::LoadModelRequest& request, v1::Model* response) const {
  return CallWithRetries(
      [&](auto* context) { return models_->LoadModel(context, request, response); });
}

grpc::Status Client::UnloadModel(const v1::UnloadModelRequest& request, v1::Model* response) const {
  return CallWithRetries(
      [&](auto* context) { return models_->UnloadModel(context, request, response); });
}

grpc::Status Client::Estimate(const v1::EstimateRequest& request,
                              v1::EstimateResponse* response) const {
  return CallWithRetries(
      [&](auto* context) { return models_->Estimate(context, request, response); });
}

}  // namespace longview::client
