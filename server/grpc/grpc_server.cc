#include "server/grpc/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/health_service.h"
#include "server/grpc/inference_service.h"
#include "server/grpc/model_service.h"
#include "server/grpc/open_streams.h"
#include "server/grpc/parse_failures.h"
#include "server/grpc/reflection_guard.h"
#include "server/grpc/text_service.h"
#include "server/grpc/tls_credentials.h"
#include "server/grpc/vision_service.h"

namespace longview::server {
namespace {

constexpr int kKeepaliveTimeMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
constexpr int kMinClientPingIntervalMs = 5'000;

std::vector<std::string> ServiceNames() {
  return {inference::GRPCInferenceService::service_full_name(),
          longview::v1::TextService::service_full_name(),
          longview::v1::VisionService::service_full_name(),
          longview::v1::ModelService::service_full_name(),
          grpc::health::v1::Health::service_full_name(),
          "grpc.reflection.v1alpha.ServerReflection"};
}

std::string Address(const GrpcServerOptions& options) {
  const bool ipv6 = options.host.find(':') != std::string::npos;
  return ipv6 ? absl::StrCat("[", options.host, "]:", options.port)
              : absl::StrCat(options.host, ":", options.port);
}

void AddLimits(const GrpcServerOptions& options, grpc::ServerBuilder& builder) {
  const size_t bytes = std::min<size_t>(options.max_message_bytes, std::numeric_limits<int>::max());
  builder.SetMaxReceiveMessageSize(static_cast<int>(bytes));
  builder.SetMaxSendMessageSize(-1);  // The Api refuses answers that are too large.
  // Two servers on one port would share its connections at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinClientPingIntervalMs);
  if (options.max_connection_age > absl::ZeroDuration()) {
    const int64_t age = absl::ToInt64Milliseconds(options.max_connection_age);
    builder.AddChannelArgument(
        GRPC_ARG_MAX_CONNECTION_AGE_MS,
        static_cast<int>(std::min<int64_t>(age, std::numeric_limits<int>::max())));
  }
}

std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> Interceptors(
    const ApiKeys* keys) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> creators;
  creators.push_back(ParseFailures());
  if (keys != nullptr) creators.push_back(ReflectionGuard(*keys));
  return creators;
}

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(Api& api, const ApiKeys* keys)
      : keys(keys),
        gate(api, keys),
        text(api, gate),
        vision(api, gate),
        models(api, gate),
        inference(api, gate, streams),
        health(api, ServiceNames()) {}

  const ApiKeys* const keys;
  const CallGate gate;
  OpenStreams streams;
  TextServiceImpl text;
  VisionServiceImpl vision;
  ModelServiceImpl models;
  InferenceServiceImpl inference;
  HealthService health;
  std::shared_ptr<grpc::ServerCredentials> credentials;
  std::unique_ptr<grpc::Server> server;
};

GrpcServer::GrpcServer(Api& api, const ApiKeys* keys) : impl_(std::make_unique<Impl>(api, keys)) {}

GrpcServer::~GrpcServer() { Stop(absl::Now()); }

absl::StatusOr<int> GrpcServer::Start(const GrpcServerOptions& options) {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  impl_->credentials = options.tls == nullptr ? grpc::InsecureServerCredentials()
                                              : TlsServerCredentials(*options.tls);
  builder.AddListeningPort(Address(options), impl_->credentials, &port);
  AddLimits(options, builder);
  builder.experimental().SetInterceptorCreators(Interceptors(impl_->keys));
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           &impl_->text, &impl_->vision, &impl_->models, &impl_->inference, &impl_->health}) {
    builder.RegisterService(service);
  }
  impl_->server = builder.BuildAndStart();
  if (impl_->server == nullptr || port == 0) {
    return MakeError(absl::StatusCode::kUnavailable,
                     absl::StrCat("gRPC cannot listen on ", Address(options),
                                  "; is the port taken (--grpc_port)?"),
                     {.reason = "PORT_TAKEN"});
  }
  return port;
}

void GrpcServer::Stop(absl::Time deadline) {
  if (impl_->server == nullptr) return;
  impl_->health.EndWatches();
  impl_->streams.EndAll();
  impl_->server->Shutdown(absl::ToChronoTime(deadline));
  impl_->server->Wait();
  impl_->server.reset();
}

}  // namespace longview::server
