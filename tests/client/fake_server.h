// A Longview server in this process that answers from a script.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "inference/grpc_service.grpc.pb.h"
#include "longview/v1/models.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "longview/v1/vision.grpc.pb.h"

namespace longview::client {

// A refusal as the server sends it; with retry_seconds it carries a google.rpc.RetryInfo.
grpc::Status Refusal(grpc::StatusCode code, const std::string& message,
                     std::optional<double> retry_seconds);

// The embedding model of a FakeServer.
struct FakeEmbedding {
  std::vector<std::string> prompts;  // Known names.
  bool late = true;                  // Chunks have vectors.
  size_t max_bytes = 1 << 30;        // The longest text.
};

// Classify answers a label named after the first word of the text; ClassifyImage one that says how
// many bytes the picture has; Embed the text's length, or
// asked for unit length how often each letter (a to z) occurs in the text or in its chunks;
// Generate the words of the text, one message each, as often as samples are wanted.
//
// Thread-safe. Listens on a free port of the loopback interface until destroyed.
class FakeServer : private longview::v1::TextService::Service,
                   private longview::v1::ModelService::Service,
                   private longview::v1::VisionService::Service,
                   private inference::GRPCInferenceService::Service {
 public:
  FakeServer();
  ~FakeServer() override;

  std::string Address() const { return "localhost:" + std::to_string(port_); }

  // The next Classify and Embed calls fail with these, in order; later ones succeed.
  void FailNext(std::deque<grpc::Status> failures);
  void SetReady(bool ready);
  // From now on ListModels answers once its deadline has passed, and not before.
  void AnswerTooLate();
  void SetEmbedding(FakeEmbedding embedding);
  // `also`: tasks besides the one that it is for.
  void RemoveModels();
  void AddModel(const std::string& name, const std::string& task, const std::string& state,
                const std::vector<std::string>& also = {});

  std::vector<longview::v1::ClassifyRequest> ClassifyRequests() const;
  std::vector<longview::v1::ClassifyImageRequest> ImageRequests() const;
  std::vector<longview::v1::EmbedRequest> EmbedRequests() const;
  longview::v1::GenerateRequest LastGenerateRequest() const;
  int TextCalls() const;
  // The authorization metadata of the last call that reached TextService; empty = none.
  std::string LastAuthorization() const;
  // Seconds until the deadline of the last such call; infinity = it had none.
  double LastSecondsLeft() const;

 private:
  grpc::Status Classify(grpc::ServerContext* context, const longview::v1::ClassifyRequest* request,
                        longview::v1::ClassifyResponse* response) override;
  grpc::Status ClassifyImage(grpc::ServerContext* context,
                             const longview::v1::ClassifyImageRequest* request,
                             longview::v1::ClassifyResponse* response) override;
  grpc::Status Embed(grpc::ServerContext* context, const longview::v1::EmbedRequest* request,
                     longview::v1::EmbedResponse* response) override;
  grpc::Status Generate(grpc::ServerContext* context, const longview::v1::GenerateRequest* request,
                        grpc::ServerWriter<longview::v1::GenerateResponse>* writer) override;
  grpc::Status ListModels(grpc::ServerContext* context,
                          const longview::v1::ListModelsRequest* request,
                          longview::v1::ListModelsResponse* response) override;
  grpc::Status Estimate(grpc::ServerContext* context, const longview::v1::EstimateRequest* request,
                        longview::v1::EstimateResponse* response) override;
  grpc::Status ServerLive(grpc::ServerContext* context, const inference::ServerLiveRequest* request,
                          inference::ServerLiveResponse* response) override;
  grpc::Status ServerReady(grpc::ServerContext* context,
                           const inference::ServerReadyRequest* request,
                           inference::ServerReadyResponse* response) override;
  grpc::Status ServerMetadata(grpc::ServerContext* context,
                              const inference::ServerMetadataRequest* request,
                              inference::ServerMetadataResponse* response) override;

  // Notes a text call and takes its scripted failure, OK if there is none.
  grpc::Status Begin(grpc::ServerContext* context);

  mutable std::mutex mutex_;  // Guards what follows, up to server_.
  std::deque<grpc::Status> failures_;
  std::vector<longview::v1::ClassifyRequest> classify_requests_;
  std::vector<longview::v1::ClassifyImageRequest> image_requests_;
  FakeEmbedding embedding_;
  std::vector<longview::v1::EmbedRequest> embed_requests_;
  longview::v1::GenerateRequest generate_request_;
  longview::v1::ListModelsResponse models_;
  int text_calls_ = 0;
  bool ready_ = true;
  bool too_late_ = false;
  std::string last_authorization_;
  double last_seconds_left_ = 0;

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace longview::client
