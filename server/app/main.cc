// longview-server: reads the configuration, serves until it is told to leave.
//
// Exit status: 0 drained; 1 a model failed, a port is taken, or a key or TLS file is bad; 2 flags
// or configuration wrong. The last line of stderr says which. stdout has one line, when every
// start-up model is warm.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/inspect.h"
#include "models/model.h"
#include "server/app/exit_timer.h"
#include "server/app/process_settings.h"
#include "server/app/quantize.h"
#include "server/app/server.h"
#include "server/app/signals.h"
#include "server/config/build_info.h"
#include "server/config/config.h"
#include "server/grpc/library_settings.h"
#include "server/log/bounded_write.h"
#include "server/log/log.h"
#include "server/scheduler/steady_clock.h"
#include "server/security/security.h"

namespace longview::server {
namespace {

enum ExitStatus { kDrained = 0, kFailed = 1, kMisconfigured = 2 };

// How long the last line waits for a stderr that nobody reads.
constexpr absl::Duration kLastLinePatience = absl::Seconds(1);
// Added to the time that the flags give to work in flight: to close connections and free memory.
constexpr absl::Duration kPatience = absl::Seconds(3);

int Fail(ExitStatus status, std::string_view message) {
  const std::string line = absl::StrCat("longview-server: ", std::string(message), "\n");
  BoundedWrite(STDERR_FILENO, line, kLastLinePatience);
  return status;
}

// Fails after the lines of the log, which come first.
int Fail(Log& log, ExitStatus status, std::string_view message) {
  log.Flush();
  return Fail(status, message);
}

// --task; Main has checked it.
std::optional<models::Task> TaskOf(const Config& config) { return models::ParseTask(config.task); }

// The flags that concern every model; the device is for the caller to choose.
models::LoadOptions LoadOptionsOf(const Config& config) {
  return {.dtype = config.dtype,
          .max_image_pixels = static_cast<int64_t>(config.max_image_pixels),
          .image_plan_bytes = static_cast<int64_t>(config.image_plan_bytes),
          .truncate = config.truncate,
          .task = TaskOf(config)};
}

// The load options for a directory that is only explained.
models::LoadOptions InspectionOptionsOf(const Config& config) {
  models::LoadOptions options = LoadOptionsOf(config);
  options.device = config.device;
  return options;
}

// --check: explains one directory.
int Check(const Config& config) {
  const absl::StatusOr<std::string> directory = ResolveModelPath(config.check_directory);
  if (!directory.ok()) return Fail(kFailed, std::string(directory.status().message()));
  const models::Inspection inspection =
      models::InspectDirectory(*directory, InspectionOptionsOf(config));
  std::cout << inspection.report << std::flush;
  if (inspection.servable) return kDrained;
  return Fail(kFailed, absl::StrCat(*directory, ": not served, as said above"));
}

// --quantize: compares one directory in int8 with itself, and writes what may be int8.
int QuantizeModel(const Config& config, EventQueue& events) {
  events.ExitOnNextSignal();
  const absl::StatusOr<std::string> directory = ResolveModelPath(config.quantize_directory);
  if (!directory.ok()) return Fail(kFailed, std::string(directory.status().message()));
  models::SetComputeThreads(config.threads);
  models::LoadOptions load = LoadOptionsOf(config);
  load.cache_bytes = static_cast<double>(config.cache_bytes);
  const absl::Status done = RunQuantize({*directory, config.texts, config.pictures, config.dry_run},
                                        load, std::cout, std::cerr, isatty(STDERR_FILENO) != 0);
  if (!done.ok()) return Fail(kFailed, std::string(done.message()));
  return kDrained;
}

absl::StatusOr<std::unique_ptr<Security>> OpenSecurity(const Config& config, Log& log) {
  return Security::Open({.tls_cert = config.tls_cert,
                         .tls_key = config.tls_key,
                         .tls_client_ca = config.tls_client_ca,
                         .api_keys_file = config.api_keys_file,
                         .share_prefixes = config.share_prefixes},
                        log);
}

// --validate_config: keys, certificates and every model directory, without loading weights.
int Validate(const Config& config, Log& log) {
  std::vector<std::string> problems;
  const auto security = OpenSecurity(config, log);
  if (!security.ok()) problems.emplace_back(security.status().message());
  const absl::StatusOr<std::vector<FoundModel>> found =
      FindModels(config.models, /*strict=*/true, log);
  if (!found.ok()) problems.emplace_back(found.status().message());
  const std::vector<FoundModel> none;
  for (const FoundModel& model : found.ok() ? *found : none) {
    const models::Inspection inspection =
        models::InspectDirectory(model.directory, InspectionOptionsOf(config));
    if (inspection.servable) continue;
    problems.push_back(absl::StrCat("model ", model.name, ": ", inspection.error));
  }
  for (const std::string& problem : problems) Fail(log, kFailed, problem);
  if (!problems.empty()) return kFailed;
  std::cout << "the configuration is fine: " << found->size() << " models" << std::endl;
  return kDrained;
}

// SIGHUP: the level that the file names now, or the one of the start if it names none.
void ReloadLogLevel(const Config& config, Log& log) {
  const absl::StatusOr<std::optional<LogLevel>> level = ReadLogLevel(config.config_file);
  if (!level.ok()) {
    log.Error("log level not changed", {{"error", std::string(level.status().message())}});
    return;
  }
  log.set_level(level->value_or(config.log_level));
  log.Warning("log level set", {{"log_level", LogLevelName(log.level())}});
}

// Serving from the ready line to the last answer.
class Session {
 public:
  Session(const Config& config, std::string device_report, Log& log, EventQueue& events)
      : config_(config), device_report_(std::move(device_report)), log_(log), events_(events) {}

  int Run() {
    models::SetComputeThreads(config_.threads);
    log_.Info("starting", {{"version", kVersion},
                           {"commit", kCommit},
                           {"threads", int64_t{config_.threads}},
                           {"backend", models::DescribeBackend()},
                           {"devices", device_report_}});
    models::CachePool cache(static_cast<double>(config_.cache_bytes));
    models::LoadOptions common = LoadOptionsOf(config_);
    common.cache = &cache;
    const auto security = OpenSecurity(config_, log_);
    if (!security.ok()) return Fail(log_, kFailed, std::string(security.status().message()));
    Server server(config_, log_, security->get(),
                  [common](const std::string& directory, const std::string& device) {
                    models::LoadOptions options = common;
                    options.device = device;
                    return models::LoadModel(directory, options);
                  });
    const absl::Status started = server.Start([this](absl::Status warm) {
      events_.Post(
          {warm.ok() ? Event::Kind::kReady : Event::Kind::kFailed, std::string(warm.message())});
    });
    if (!started.ok()) return Fail(log_, kFailed, std::string(started.message()));
    const std::string url = ConsoleUrl(server.ports().http);
    log_.Info("listening", {{url.empty() ? "" : "url", url},
                            {"grpc", int64_t{server.ports().grpc}},
                            {"http", int64_t{server.ports().http}},
                            {"admin", int64_t{server.ports().admin}}});
    return Serve(server);
  }

 private:
  // The URL of the console page; empty without HTTP.
  std::string ConsoleUrl(int port) const {
    if (port < 0) return "";
    const bool any = config_.host == "0.0.0.0" || config_.host == "::";
    const bool six = config_.host.find(':') != std::string::npos;
    const std::string host = any ? "localhost" : six ? "[" + config_.host + "]" : config_.host;
    return absl::StrCat(config_.tls_cert.empty() ? "http://" : "https://", host, ":", port, "/");
  }

  int Serve(Server& server) {
    while (true) {
      const Event event = *events_.Wait(absl::InfiniteFuture());
      switch (event.kind) {
        case Event::Kind::kReady:
          server.BeReady();
          std::cout << "longview ready grpc=" << server.ports().grpc
                    << " http=" << server.ports().http << std::endl;
          break;
        case Event::Kind::kFailed:
          exit_.EndAt(SteadyNow() + kPatience, kFailed);
          server.Stop(SteadyNow());
          return Fail(log_, kFailed, event.detail);
        case Event::Kind::kHangUp:
          if (!config_.config_file.empty()) {
            ReloadLogLevel(config_, log_);
          } else if (!events_.hang_up_ignored()) {
            return Leave(server, /*drain=*/false);
          }
          break;
        case Event::Kind::kTerminate:
        case Event::Kind::kInterrupt:
          return Leave(server, event.kind == Event::Kind::kTerminate);
      }
    }
  }

  int Leave(Server& server, bool drain) {
    events_.ExitOnNextSignal();
    server.Drain();
    log_.Info("draining", {{"seconds", int64_t{drain ? config_.drain_seconds : 0}}});
    const absl::Time end = SteadyNow() + absl::Seconds(config_.drain_seconds);
    while (drain && events_.Wait(end)) {
    }
    const absl::Time deadline = SteadyNow() + absl::Seconds(config_.shutdown_seconds);
    exit_.EndAt(deadline + kPatience, kDrained);
    server.Stop(deadline);
    // Destructors may wait for a layer or a load that nobody needs any more; the timer ends that.
    exit_.EndAt(SteadyNow() + kPatience, kDrained);
    log_.Info("drained");
    log_.Flush();
    return kDrained;
  }

  const Config& config_;
  const std::string device_report_;
  Log& log_;
  EventQueue& events_;
  ExitTimer exit_;
};

int Serve(Config config, Log& log, EventQueue& events) {
  FormatGrpcLog(config.log_format);
  absl::StatusOr<models::Devices> devices = models::FindDevices(config.device);
  if (!devices.ok()) {
    return Fail(log, kMisconfigured, absl::StrCat("flag --device: ", devices.status().message()));
  }
  config.devices = std::move(devices->names);
  return Session(config, std::move(devices->report), log, events).Run();
}

int Main(int argc, char** argv) {
  LimitGrpcReads();
  LetIdleThreadsSleep(argv);
  LimitMallocArenas();
  EventQueue events;
  absl::StatusOr<Config> config = LoadConfig(argc, argv, environ);
  if (!config.ok()) return Fail(kMisconfigured, std::string(config.status().message()));
  Log log(config->log_format, config->log_level);
  for (const std::string& warning : config->warnings) log.Warning(warning);
  if (!config->task.empty() && !TaskOf(*config)) {
    return Fail(log, kMisconfigured,
                absl::StrCat("flag --task: '", config->task.substr(0, 64),
                             "' must be the name of a task, such as fill-mask"));
  }
  switch (config->mode) {
    case Mode::kHelp:
      std::cout << HelpText() << std::flush;
      return kDrained;
    case Mode::kVersion:
      std::cout << VersionText() << models::DescribeBackend() << std::endl;
      return kDrained;
    case Mode::kCheck:
      return Check(*config);
    case Mode::kQuantize:
      return QuantizeModel(*config, events);
    case Mode::kPrintConfig:
      std::cout << ConfigJson(*config) << std::endl;
      return kDrained;
    case Mode::kValidateConfig:
      return Validate(*config, log);
    case Mode::kServe:
      return Serve(*std::move(config), log, events);
  }
  return kMisconfigured;
}

}  // namespace
}  // namespace longview::server

int main(int argc, char** argv) { return longview::server::Main(argc, argv); }
