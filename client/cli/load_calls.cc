#include "client/cli/load_calls.h"

#include <chrono>
#include <utility>

#include "client/cli/connection.h"

namespace longview::client {
namespace {

// The state of a unary call while it is under way.
template <typename Response>
struct UnaryCall {
  grpc::ClientContext context;
  Response response;
};

template <typename Response, typename Start>
void StartUnary(const CallSettings& settings, OnCallEnd done, const Start& start) {
  auto* call = new UnaryCall<Response>;
  Prepare(call->context, settings.api_key, settings.timeout_seconds);
  start(&call->context, &call->response, [call, done = std::move(done)](grpc::Status status) {
    delete call;
    done(std::move(status));
  });
}

// Reads a stream to its end; deletes itself.
class StreamCall : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  StreamCall(v1::TextService::Stub& stub, const v1::GenerateRequest& request,
             const CallSettings& settings, OnCallEnd done)
      : done_(std::move(done)) {
    Prepare(context_, settings.api_key, settings.timeout_seconds);
    stub.async()->Generate(&context_, &request, this);
    StartRead(&message_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (message_.token_ids_size() > 0 || !message_.text().empty()) {
      end_.pieces.push_back(std::chrono::steady_clock::now());
    }
    StartRead(&message_);
  }

  void OnDone(const grpc::Status& status) override {
    end_.status = status;
    const OnCallEnd done = std::move(done_);
    const CallEnd end = std::move(end_);
    // First: the context holds the channel, and whoever hears of the last end may let go of it;
    // gRPC must not destroy a channel on the thread that runs its callbacks.
    delete this;
    done(end);
  }

 private:
  OnCallEnd done_;
  grpc::ClientContext context_;
  v1::GenerateResponse message_;
  CallEnd end_{grpc::Status::OK};
};

}  // namespace

void StartClassify(v1::TextService::Stub& stub, const v1::ClassifyRequest& request,
                   const CallSettings& settings, OnCallEnd done) {
  StartUnary<v1::ClassifyResponse>(
      settings, std::move(done), [&](auto* context, auto* response, auto on_done) {
        stub.async()->Classify(context, &request, response, std::move(on_done));
      });
}

void StartEmbed(v1::TextService::Stub& stub, const v1::EmbedRequest& request,
                const CallSettings& settings, OnCallEnd done) {
  StartUnary<v1::EmbedResponse>(
      settings, std::move(done), [&](auto* context, auto* response, auto on_done) {
        stub.async()->Embed(context, &request, response, std::move(on_done));
      });
}

void StartGenerate(v1::TextService::Stub& stub, const v1::GenerateRequest& request,
                   const CallSettings& settings, OnCallEnd done) {
  new StreamCall(stub, request, settings, std::move(done));
}

}  // namespace longview::client
