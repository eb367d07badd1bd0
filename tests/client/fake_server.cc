#include "tests/client/fake_server.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <thread>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace longview::client {
namespace {

// The byte at which a code point begins.
size_t ByteOf(const std::string& text, int code_point) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80 && code_point-- == 0) break;
  }
  return at;
}

void AddLetterCounts(const std::string& text, longview::v1::EmbedResponse* response) {
  float counts[26] = {};
  for (const char c : text) {
    if (c >= 'a' && c <= 'z') ++counts[c - 'a'];
  }
  float squares = 1e-9f;
  for (const float count : counts) squares += count * count;
  for (const float count : counts) response->add_embedding(count / std::sqrt(squares));
}

grpc::Status InvalidArgument(const std::string& message) {
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, message);
}

}  // namespace

grpc::Status Refusal(grpc::StatusCode code, const std::string& message,
                     std::optional<double> retry_seconds) {
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_domain("longview");
  details.add_details()->PackFrom(info);
  if (retry_seconds) {
    google::rpc::RetryInfo retry;
    const int64_t nanos = static_cast<int64_t>(*retry_seconds * 1e9);
    retry.mutable_retry_delay()->set_seconds(nanos / 1000000000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(nanos % 1000000000));
    details.add_details()->PackFrom(retry);
  }
  return grpc::Status(code, message, details.SerializeAsString());
}

FakeServer::FakeServer() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("localhost:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(static_cast<longview::v1::TextService::Service*>(this));
  builder.RegisterService(static_cast<longview::v1::ModelService::Service*>(this));
  builder.RegisterService(static_cast<longview::v1::VisionService::Service*>(this));
  builder.RegisterService(static_cast<inference::GRPCInferenceService::Service*>(this));
  server_ = builder.BuildAndStart();
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

void FakeServer::FailNext(std::deque<grpc::Status> failures) {
  std::lock_guard<std::mutex> lock(mutex_);
  failures_ = std::move(failures);
}

void FakeServer::AnswerTooLate() {
  std::lock_guard<std::mutex> lock(mutex_);
  too_late_ = true;
}

void FakeServer::SetReady(bool ready) {
  std::lock_guard<std::mutex> lock(mutex_);
  ready_ = ready;
}

void FakeServer::SetEmbedding(FakeEmbedding embedding) {
  std::lock_guard<std::mutex> lock(mutex_);
  embedding_ = std::move(embedding);
}

std::vector<longview::v1::EmbedRequest> FakeServer::EmbedRequests() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return embed_requests_;
}

void FakeServer::RemoveModels() {
  std::lock_guard<std::mutex> lock(mutex_);
  models_.clear_models();
}

void FakeServer::AddModel(const std::string& name, const std::string& task,
                          const std::string& state, const std::vector<std::string>& also) {
  std::lock_guard<std::mutex> lock(mutex_);
  longview::v1::Model* model = models_.add_models();
  model->set_name(name);
  model->set_version("1");
  model->set_task(task);
  model->add_tasks(task);
  for (const std::string& each : also) model->add_tasks(each);
  model->set_state(state);
}

std::vector<longview::v1::ClassifyRequest> FakeServer::ClassifyRequests() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return classify_requests_;
}

std::vector<longview::v1::ClassifyImageRequest> FakeServer::ImageRequests() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return image_requests_;
}

int FakeServer::TextCalls() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return text_calls_;
}

std::string FakeServer::LastAuthorization() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_authorization_;
}

double FakeServer::LastSecondsLeft() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_seconds_left_;
}

grpc::Status FakeServer::Begin(grpc::ServerContext* context) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++text_calls_;
  const auto found = context->client_metadata().find("authorization");
  last_authorization_ = found == context->client_metadata().end()
                            ? ""
                            : std::string(found->second.data(), found->second.size());
  const auto deadline = context->deadline();
  last_seconds_left_ =
      deadline == std::chrono::system_clock::time_point::max()
          ? std::numeric_limits<double>::infinity()
          : std::chrono::duration<double>(deadline - std::chrono::system_clock::now()).count();
  if (failures_.empty()) return grpc::Status::OK;
  const grpc::Status failure = failures_.front();
  failures_.pop_front();
  return failure;
}

grpc::Status FakeServer::Classify(grpc::ServerContext* context,
                                  const longview::v1::ClassifyRequest* request,
                                  longview::v1::ClassifyResponse* response) {
  if (grpc::Status status = Begin(context); !status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  classify_requests_.push_back(*request);
  response->set_model(request->model());
  longview::v1::Label* label = response->add_labels();
  label->set_name(request->text().substr(0, request->text().find_first_of(" \n")));
  label->set_score(0.75f);
  response->mutable_usage()->set_input_tokens(static_cast<int>(request->text().size()));
  return grpc::Status::OK;
}

grpc::Status FakeServer::ClassifyImage(grpc::ServerContext*,
                                       const longview::v1::ClassifyImageRequest* request,
                                       longview::v1::ClassifyResponse* response) {
  std::lock_guard<std::mutex> lock(mutex_);
  image_requests_.push_back(*request);
  response->set_model(request->model());
  auto* label = response->add_labels();
  label->set_name("picture of " + std::to_string(request->image().size()));
  label->set_score(0.5);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Embed(grpc::ServerContext* context,
                               const longview::v1::EmbedRequest* request,
                               longview::v1::EmbedResponse* response) {
  if (grpc::Status status = Begin(context); !status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  embed_requests_.push_back(*request);
  const std::vector<std::string>& prompts = embedding_.prompts;
  if (request->has_prompt_name() &&
      std::find(prompts.begin(), prompts.end(), request->prompt_name()) == prompts.end()) {
    return InvalidArgument("prompt_name: not a prompt of this model; it has none");
  }
  if (request->chunks_size() > 0) response->set_chunking(embedding_.late ? "late" : "separate");
  std::string text = request->text();
  if (text.size() > embedding_.max_bytes) {
    if (!request->truncate()) {
      return InvalidArgument("text: too long; \"truncate\" cuts what does not fit");
    }
    response->mutable_usage()->set_truncated_tokens(1);
    text.resize(embedding_.max_bytes);
  }
  response->mutable_usage()->set_input_tokens(static_cast<int>(text.size()));
  if (!request->has_normalize()) {
    response->add_embedding(static_cast<float>(text.size()));
    response->add_embedding(-0.5f);
  } else if (request->chunks_size() == 0) {
    AddLetterCounts(text, response);
  }
  for (const longview::v1::TextRange& chunk : request->chunks()) {
    const size_t begin = ByteOf(text, chunk.start()), end = ByteOf(text, chunk.end());
    AddLetterCounts(text.substr(begin, end - begin), response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::Generate(grpc::ServerContext* context,
                                  const longview::v1::GenerateRequest* request,
                                  grpc::ServerWriter<longview::v1::GenerateResponse>* writer) {
  if (grpc::Status status = Begin(context); !status.ok()) return status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    generate_request_ = *request;
  }
  longview::v1::GenerateResponse message;
  message.set_model(request->model());
  for (int sample = 0; sample < std::max(1, request->n()); ++sample) {
    message.set_index(sample);
    if (request->collect()) message.set_text(request->text());
    std::istringstream words(request->text());
    std::string word;
    while (!request->collect() && words >> word) {
      message.set_text(word + " ");
      writer->Write(message);
      message.set_number(message.number() + 1);
    }
    if (request->collect()) writer->Write(message);
  }
  return grpc::Status::OK;
}

longview::v1::GenerateRequest FakeServer::LastGenerateRequest() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return generate_request_;
}

grpc::Status FakeServer::ListModels(grpc::ServerContext* context,
                                    const longview::v1::ListModelsRequest*,
                                    longview::v1::ListModelsResponse* response) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool too_late = too_late_;
  lock.unlock();
  while (too_late && !context->IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  lock.lock();
  *response = models_;
  return grpc::Status::OK;
}

grpc::Status FakeServer::Estimate(grpc::ServerContext*,
                                  const longview::v1::EstimateRequest* request,
                                  longview::v1::EstimateResponse* response) {
  const double pixels = static_cast<double>(request->width()) * request->height();
  response->set_seconds(request->num_tokens() * 1e-3 + pixels * 1e-6);
  response->mutable_usage()->set_width(request->width());
  response->mutable_usage()->set_height(request->height());
  response->set_fits(true);
  response->mutable_usage()->set_input_tokens(request->num_tokens());
  return grpc::Status::OK;
}

grpc::Status FakeServer::ServerLive(grpc::ServerContext*, const inference::ServerLiveRequest*,
                                    inference::ServerLiveResponse* response) {
  response->set_live(true);
  return grpc::Status::OK;
}

grpc::Status FakeServer::ServerReady(grpc::ServerContext*, const inference::ServerReadyRequest*,
                                     inference::ServerReadyResponse* response) {
  std::lock_guard<std::mutex> lock(mutex_);
  response->set_ready(ready_);
  return grpc::Status::OK;
}

grpc::Status FakeServer::ServerMetadata(grpc::ServerContext*,
                                        const inference::ServerMetadataRequest*,
                                        inference::ServerMetadataResponse* response) {
  response->set_name("longview");
  response->set_version("1.2.3");
  return grpc::Status::OK;
}

}  // namespace longview::client
