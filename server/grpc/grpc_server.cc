#include "server/grpc/grpc_server.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/server_credentials.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "longview/v1/models.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "longview/v1/vision.grpc.pb.h"
#include "server/errors.h"
#include "server/grpc/acceptor.h"
#include "server/grpc/arriving_calls.h"
#include "server/grpc/byte_service.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/health_service.h"
#include "server/grpc/library_settings.h"
#include "server/grpc/open_calls.h"
#include "server/grpc/open_streams.h"
#include "server/grpc/reflection_service.h"
#include "server/grpc/services.h"
#include "server/limits/fixed_limits.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/scheduler/thread_loop.h"
#include "server/security/tls_material.h"

namespace longview::server {
namespace {

// gRPC's C++ API offers fixed certificates, or files that it watches by itself and takes one by
// one, so that a new certificate may meet the old key. The C API asks at every connection.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(const TlsSource& source) : source_(source) {
    const auto clients = source.Current()->client_ca.empty()
                             ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                             : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    // Takes the options over.
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(clients, &Fetch, this));
  }
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  // Keys are checked where calls are admitted, with and without TLS.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // The library calls it under a lock of its own.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadingCredentials*>(self)->FetchNext(config);
  }

  grpc_ssl_certificate_config_reload_status FetchNext(grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const TlsMaterial> material = source_.Current();
    if (material == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    given_ = std::move(material);
    const grpc_ssl_pem_key_cert_pair own = {given_->private_key.c_str(),
                                            given_->certificate_chain.c_str()};
    // gRPC 1.51 wants authorities even where clients are not asked; they have no effect then.
    const char* clients =
        given_->client_ca.empty() ? given_->certificate_chain.c_str() : given_->client_ca.c_str();
    *config = grpc_ssl_server_certificate_config_create(clients, &own, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsSource& source_;
  std::shared_ptr<const TlsMaterial> given_;  // The material in the library's hands.
  grpc_server_credentials* credentials_ = nullptr;
};

// Asks the source at every new connection. With a client CA, clients must show a certificate it
// signed. The source, and the credentials too, outlive the server.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const TlsSource& source) {
  return std::make_shared<ReloadingCredentials>(source);
}

constexpr int kKeepaliveTimeMs = 60'000;     // A silent connection is pinged so often.
constexpr int kKeepaliveTimeoutMs = 20'000;  // A ping without an answer ends the connection.
constexpr int kHandshakeTimeoutMs = 20'000;  // TLS, and the first settings.
constexpr int kMaxIdleMs = 300'000;          // A connection without calls is closed after it.
// How long the end of what still runs at the deadline of a stop may take to arrive.
constexpr absl::Duration kGoodbye = absl::Seconds(1);
// Calls on a connection that is renewed may go on this long.
constexpr int kMaxAgeGraceMs = 3'600'000;
constexpr int kParseThreads = 2;
constexpr size_t kMinQuotaBytes = size_t{1} << 30;

std::vector<std::string> ServiceNames() {
  return {inference::GRPCInferenceService::service_full_name(),
          longview::v1::TextService::service_full_name(),
          longview::v1::VisionService::service_full_name(),
          longview::v1::ModelService::service_full_name(),
          grpc::health::v1::Health::service_full_name(),
          grpc::reflection::v1::ServerReflection::service_full_name(),
          grpc::reflection::v1alpha::ServerReflection::service_full_name()};
}

std::string Address(const GrpcServerOptions& options) {
  const bool ipv6 = options.host.find(':') != std::string::npos;
  return ipv6 ? absl::StrCat("[", options.host, "]:", options.port)
              : absl::StrCat(options.host, ":", options.port);
}

absl::Status CannotListen(const GrpcServerOptions& options, const absl::Status& why) {
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("gRPC cannot listen on ", Address(options), ": ", why.message(),
                                "; is the port taken (--grpc_port)?"),
                   {.reason = "PORT_TAKEN"});
}

int Milliseconds(absl::Duration duration) {
  const int64_t count = absl::ToInt64Milliseconds(duration);
  return static_cast<int>(std::min<int64_t>(count, std::numeric_limits<int>::max()));
}

void AddLimits(const GrpcServerOptions& options, grpc::ServerBuilder& builder) {
  const size_t bytes = std::min<size_t>(options.max_message_bytes, std::numeric_limits<int>::max());
  builder.SetMaxReceiveMessageSize(static_cast<int>(bytes));
  builder.SetMaxSendMessageSize(-1);  // The Api refuses answers that are too large.
  // The library inflates without a limit; MessageDecoder has one.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(kMaxHeadBytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Pings are only answered, and their bytes count as all others do. Past the strikes that the
  // library allows it makes an error of each further ping and joins it to the ones before, which
  // costs more with every ping and holds up other connections for a second.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  if (options.max_connection_age > absl::ZeroDuration()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                               Milliseconds(options.max_connection_age));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kMaxAgeGraceMs);
  }
  // The last resort where many clients together send without end.
  grpc::ResourceQuota quota("longview");
  quota.Resize(kMinQuotaBytes + 8 * options.max_message_bytes);
  builder.SetResourceQuota(quota);
}

// Requests and answers of an address, and what it has half sent, together: a message and
// a half of the largest. gRPC holds about twice as much memory as bytes that came.
uint64_t MostBytesOfAddress(size_t max_message_bytes) {
  constexpr uint64_t kLeast = uint64_t{16} << 20;
  return std::max(3 * uint64_t{max_message_bytes} / 2, kLeast);
}

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(Api& api, const ApiKeys* keys, TrustedProxies proxies)
      : api(api),
        proxies(std::move(proxies)),
        gate(api, keys, this->proxies),
        services(ServiceNames()),
        health(api, services) {}

  // The parts that depend on the options; exist from Start on.
  struct Running {
    Running(Impl& impl, const GrpcServerOptions& options)
        : acceptor({.limits = options.connections,
                    .most_bytes = MostBytesOfAddress(options.max_message_bytes),
                    .transfer_grace = options.transfer_grace,
                    .shut_out = options.shut_out,
                    .proxies = impl.proxies,
                    .ends = options.ends},
                   options.proxy_protocol ? options.proxy_header_timeout : absl::ZeroDuration()),
          decoder(options.max_message_bytes),
          pool(kParseThreads),
          tools{impl.gate, decoder, *options.bytes, pool, acceptor.connections(), impl.calls},
          text(tools, longview::v1::TextService::service_full_name()),
          vision(tools, longview::v1::VisionService::service_full_name()),
          models(tools, longview::v1::ModelService::service_full_name()),
          inference(tools, inference::GRPCInferenceService::service_full_name()),
          health(tools, grpc::health::v1::Health::service_full_name()),
          reflection(tools, grpc::reflection::v1::ServerReflection::service_full_name()),
          old_reflection(tools, grpc::reflection::v1alpha::ServerReflection::service_full_name()) {
      AddTextMethods(impl.api, text);
      AddVisionMethods(impl.api, vision);
      AddModelMethods(impl.api, models);
      AddInferenceMethods(impl.api, impl.streams, inference);
      impl.health.AddMethods(health);
      AddReflection(impl.services, impl.streams, reflection);
      AddReflection(impl.services, impl.streams, old_reflection);
    }

    Acceptor acceptor;
    const MessageDecoder decoder;
    ParsePool pool;
    const CallTools tools;
    ByteService text;
    ByteService vision;
    ByteService models;
    ByteService inference;
    ByteService health;
    ByteService reflection;
    ByteService old_reflection;
  };

  Api& api;
  const TrustedProxies proxies;
  const CallGate gate;
  OpenStreams streams;
  OpenCalls calls;
  const std::vector<std::string> services;  // Full names.
  HealthService health;
  std::optional<Running> running;
  std::shared_ptr<grpc::ServerCredentials> credentials;
  std::unique_ptr<grpc::Server> server;
};

GrpcServer::GrpcServer(Api& api, const ApiKeys* keys, TrustedProxies proxies)
    : impl_(std::make_unique<Impl>(api, keys, std::move(proxies))) {}

GrpcServer::~GrpcServer() { Stop(SteadyNow()); }

absl::StatusOr<int> GrpcServer::Start(const GrpcServerOptions& options) {
  absl::StatusOr<ListeningSockets> sockets = ListeningSockets::Open(options.host, options.port);
  if (!sockets.ok()) return CannotListen(options, sockets.status());
  grpc::ServerBuilder builder;
  impl_->credentials = options.tls == nullptr ? grpc::InsecureServerCredentials()
                                              : TlsServerCredentials(*options.tls);
  AddLimits(options, builder);
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto gate =
      builder.experimental().AddExternalConnectionAcceptor(External::FROM_FD, impl_->credentials);
  Impl::Running& running = impl_->running.emplace(*impl_, options);
  builder.SetContextAllocator(std::make_unique<ArrivingCalls>(running.acceptor.connections()));
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           &running.text, &running.vision, &running.models, &running.inference, &running.health,
           &running.reflection, &running.old_reflection}) {
    builder.RegisterService(service);
  }
  impl_->server = builder.BuildAndStart();
  if (impl_->server == nullptr) {
    return CannotListen(options, absl::InternalError("gRPC did not start"));
  }
  const int port = sockets->port();
  running.acceptor.Start(*std::move(sockets), std::move(gate));
  return port;
}

void GrpcServer::Stop(absl::Time deadline) {
  if (impl_->server == nullptr) return;
  impl_->running->acceptor.StopListening();
  impl_->health.EndWatches();
  impl_->streams.EndAll();
  const absl::Duration left = std::min(deadline - SteadyNow(), absl::Hours(24));
  absl::Mutex mutex;
  SteadyCondVar changed;
  bool over = false;
  std::thread ender = StartThread([&] {
    absl::MutexLock lock(&mutex);
    if (!changed.AwaitFor(&mutex, absl::Condition(&over), left)) {
      impl_->calls.EndAll(ShuttingDownError());
    }
  });
  // Shutdown waits for calls; past its own deadline it cuts those whose clients do not take the
  // end.
  impl_->server->Shutdown(std::chrono::system_clock::now() +
                          absl::ToChronoMicroseconds(left + kGoodbye));
  {
    absl::MutexLock lock(&mutex);
    over = true;
  }
  changed.Signal();
  ender.join();
  impl_->server->Wait();
  impl_->calls.AwaitNone();
  impl_->server.reset();
}

}  // namespace longview::server
