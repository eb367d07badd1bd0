#include "server/app/server.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "models/status_macros.h"
#include "server/api/api.h"
#include "server/app/memory_keeper.h"
#include "server/config/build_info.h"
#include "server/engine/documents.h"
#include "server/engine/engine.h"
#include "server/grpc/grpc_server.h"
#include "server/http/serve/http_server.h"
#include "server/lifecycle.h"
#include "server/limits/byte_budget.h"
#include "server/limits/connection_ends.h"
#include "server/limits/connection_ledger.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"
#include "server/tracing/tracer.h"

namespace longview::server {
namespace {

// Counts every end; of ends that are alike a line is written at most once a second, since a client
// can cause thousands, with the number of those before it that have none. Thread-safe. Borrows both
// collaborators; outlives the transports.
class ConnectionLog {
 public:
  ConnectionLog(Metrics& metrics, Log& log) : metrics_(metrics), log_(log) {}

  // For the transport of this name: http, grpc or admin.
  ConnectionEnds For(std::string transport);

 private:
  struct Line {
    absl::Time last = absl::InfinitePast();
    int64_t unwritten = 0;
  };

  void Ended(const std::string& transport, EndCause cause, std::string_view address);

  Metrics& metrics_;
  Log& log_;
  absl::Mutex mutex_;
  std::map<std::pair<std::string, EndCause>, Line> lines_ ABSL_GUARDED_BY(mutex_);
};

ConnectionEnds ConnectionLog::For(std::string transport) {
  return [this, transport = std::move(transport)](EndCause cause, std::string_view address) {
    Ended(transport, cause, address);
  };
}

void ConnectionLog::Ended(const std::string& transport, EndCause cause, std::string_view address) {
  metrics_.ConnectionEnded(transport, EndCauseName(cause));
  int64_t unwritten = 0;
  {
    absl::MutexLock lock(&mutex_);
    Line& line = lines_[{transport, cause}];
    const absl::Time now = SteadyNow();
    if (now - line.last < absl::Seconds(1)) {
      ++line.unwritten;
      return;
    }
    line.last = now;
    unwritten = std::exchange(line.unwritten, 0);
  }
  const Log::Fields fields = {{"transport", transport},
                              {"reason", EndCauseName(cause)},
                              {"client", address},
                              {unwritten > 0 ? "others_before" : "", unwritten}};
  // Idle connections are there to make room.
  if (cause == EndCause::kRoom) return log_.Info("connection ended by the server", fields);
  log_.Warning("connection ended by the server", fields);
}

EngineOptions EngineOptionsOf(const Config& config, Log& log) {
  EngineOptions options;
  if (!config.devices.empty()) options.devices = config.devices;
  options.scheduler.max_queue_seconds = config.max_queue_seconds;
  options.scheduler.nested_share = config.nested_share;
  options.scheduler.memory_bytes = static_cast<double>(config.cache_bytes);
  options.scheduler.keeps_state = config.cache_bytes > 0;
  const auto seconds = [](int flag) {
    return flag == 0 ? absl::InfiniteDuration() : absl::Seconds(flag);
  };
  options.default_timeout = seconds(config.default_timeout_seconds);
  options.max_timeout = seconds(config.max_timeout_seconds);
  options.on_lost = [&log](const std::string& device, const std::string& why) {
    log.Error("device lost", {{"device", device}, {"error", why}});
  };
  return options;
}

ApiOptions ApiOptionsOf(const Config& config, Tracer* tracer, ByteBudget* bytes) {
  return {.max_message_bytes = config.max_message_bytes,
          .allow_model_control = config.allow_model_control,
          .version = kVersion,
          .tracer = tracer,
          .bytes = bytes};
}

std::unique_ptr<Tracer> TracerOf(const Config& config) {
  if (config.otlp_endpoint.empty()) return nullptr;
  return std::make_unique<Tracer>(TracerOptions{.endpoint = config.otlp_endpoint,
                                                .sample_ratio = config.trace_sample_ratio,
                                                .version = kVersion});
}

}  // namespace

class Server::Impl {
 public:
  Impl(const Config& config, Log& log, const Security* security, LoadFunction load)
      : config_(config),
        log_(log),
        metrics_(kVersion, kCommit, absl::StrJoin(EngineOptionsOf(config, log).devices, ",")),
        tracer_(TracerOf(config)),
        bytes_(ByteLimitsFor(config.max_message_bytes)),
        engine_(EngineOptionsOf(config, log), lifecycle_, metrics_),
        store_(config.models, std::move(load), engine_, metrics_, log,
               {.cpu_instead = config.device == "auto", .strict = config.strict}),
        documents_(std::in_place, engine_, store_, clock_, DocumentsOptions()),
        api_(store_, engine_, *documents_, lifecycle_, metrics_, log,
             ApiOptionsOf(config, tracer_.get(), &bytes_)),
        tls_(security == nullptr ? nullptr : security->tls()),
        connection_log_(metrics_, log),
        connection_limits_(ConnectionLimitsFor(RaiseDescriptorLimit(), config.max_connections,
                                               config.max_connections_per_address)),
        grpc_(api_, KeysOf(security), ProxiesOf(config)),
        http_(api_, metrics_, HttpOptions(config, security)),
        admin_(api_, metrics_, AdminOptions(config)),
        memory_([this] { return engine_.calls() == 0; }) {
    metrics_.SetExportCounts([this, &log] { return ExportCountsOf(log); });
  }

  ~Impl() {
    Stop(SteadyNow());
    metrics_.SetExportCounts({});
  }

  absl::Status Start(absl::AnyInvocable<void(absl::Status)> started) {
    RETURN_IF_ERROR(store_.Discover());
    if (config_.grpc_port >= 0) {
      ASSIGN_OR_RETURN(
          const int port,
          grpc_.Start({.host = config_.host,
                       .port = config_.grpc_port,
                       .max_message_bytes = config_.max_message_bytes,
                       .max_connection_age = absl::Seconds(config_.max_connection_age_seconds),
                       .tls = tls_,
                       .connections = connection_limits_,
                       .bytes = &bytes_,
                       .proxy_protocol = config_.proxy_protocol,
                       .ends = connection_log_.For("grpc")}));
      ports_.grpc = port;
    }
    if (config_.http_port >= 0) {
      ASSIGN_OR_RETURN(const int port, http_.Start());
      ports_.http = port;
    }
    if (config_.admin_port >= 0) {
      ASSIGN_OR_RETURN(const int port, admin_.Start());
      ports_.admin = port;
    }
    store_.LoadAll(std::move(started));
    return absl::OkStatus();
  }

  void Stop(absl::Time deadline) {
    if (stopped_) return;
    stopped_ = true;
    lifecycle_.set_phase(Lifecycle::Phase::kStopping);
    std::thread http = StartThread([&] { http_.Stop(deadline); });
    grpc_.Stop(deadline);
    http.join();
    admin_.Stop(SteadyNow());  // Last, so that probes and scrapes see the end.
    documents_.reset();        // Their state belongs to the device's thread.
    engine_.Shutdown();
  }

  BoundPorts ports() const { return ports_; }
  void set_phase(Lifecycle::Phase phase) { lifecycle_.set_phase(phase); }
  void Drain() {
    lifecycle_.set_phase(Lifecycle::Phase::kDraining);
    http_.Drain();
  }

 private:
  ExportCounts ExportCountsOf(const Log& log) const {
    const TracerCounts spans = tracer_ == nullptr ? TracerCounts() : tracer_->counts();
    return {.dropped_log_lines = log.dropped(),
            .exported_spans = spans.exported,
            .dropped_spans = spans.dropped};
  }

  static const ApiKeys* KeysOf(const Security* security) {
    return security == nullptr ? nullptr : security->keys();
  }

  // Checked with the configuration.
  static TrustedProxies ProxiesOf(const Config& config) {
    return TrustedProxies::Parse(config.trusted_proxies).value_or(TrustedProxies());
  }

  HttpServerOptions HttpOptions(const Config& config, const Security* security) {
    HttpServerOptions options;
    options.transport.connections = connection_limits_;
    options.transport.ends = connection_log_.For("http");
    options.transport.bytes = &bytes_;
    options.transport.host = config.host;
    options.transport.port = config.http_port;
    options.transport.max_body_bytes = config.max_message_bytes;
    options.transport.tls = security == nullptr ? nullptr : security->tls();
    options.transport.proxies = ProxiesOf(config);
    options.transport.proxy_protocol = config.proxy_protocol;
    options.version = kVersion;
    options.commit = kCommit;
    options.keys = KeysOf(security);
    options.log = &log_;
    options.cors_origins = config.cors_origins;
    options.refuse_token_ids = config.refuse_token_ids;
    options.search_folder = config.search_folder;
    options.names = config.server_names;
    options.names.push_back(config.host);
    options.proxies = ProxiesOf(config);
    return options;
  }

  HttpServerOptions AdminOptions(const Config& config) {
    HttpServerOptions options;
    options.transport.connections = connection_limits_;
    options.transport.ends = connection_log_.For("admin");
    options.transport.host = config.host;
    options.transport.port = config.admin_port;
    options.transport.threads = 1;
    options.admin = true;
    return options;
  }

  // Declared in the order of dependence: each is stopped before what it uses.
  const Config config_;
  Log& log_;
  Lifecycle lifecycle_;
  Metrics metrics_;
  const std::unique_ptr<Tracer> tracer_;  // Null = off.
  ByteBudget bytes_;  // Shared by both transports; answers of the engine hold parts of it.
  Engine engine_;
  ModelStoreImpl store_;
  const SteadyClock clock_;
  std::optional<Documents> documents_;  // Until Stop.
  Api api_;
  const TlsSource* const tls_;
  ConnectionLog connection_log_;
  const ConnectionLimits connection_limits_;  // Apply to each port.
  GrpcServer grpc_;
  HttpServer http_;
  HttpServer admin_;
  MemoryKeeper memory_;
  BoundPorts ports_;
  bool stopped_ = false;
};

Server::Server(const Config& config, Log& log, const Security* security, LoadFunction load)
    : impl_(std::make_unique<Impl>(config, log, security, std::move(load))) {
  // Debian builds Abseil with the search for lock cycles, which every lock of gRPC would pay for.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}
Server::~Server() = default;

absl::Status Server::Start(absl::AnyInvocable<void(absl::Status)> started) {
  return impl_->Start(std::move(started));
}
BoundPorts Server::ports() const { return impl_->ports(); }
void Server::BeReady() { impl_->set_phase(Lifecycle::Phase::kServing); }
void Server::Drain() { impl_->Drain(); }
void Server::Stop(absl::Time deadline) { impl_->Stop(deadline); }

}  // namespace longview::server
