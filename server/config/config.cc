#include "server/config/config.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/status_macros.h"
#include "server/config/build_info.h"
#include "server/config/byte_size.h"
#include "server/config/flag_sources.h"
#include "server/config/flags.h"
#include "server/config/host.h"
#include "server/limits/fixed_limits.h"
#include "server/security/client_address.h"
#include "server/security/page_origins.h"

namespace longview::server {
namespace {

absl::Status Bad(std::string_view flag, std::string_view value, std::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("flag --", std::string(flag), ": '",
                                                 std::string(value), "' must be ",
                                                 std::string(expected)));
}

// The folder of the bundled models, in the build tree, else in an installation; empty: none.
std::string BundledModels() {
  namespace fs = std::filesystem;
  const fs::path program = ProgramFolder();
  for (const char* place : {"../../models/zoo", "../share/longview/zoo"}) {
    std::error_code error;
    const fs::path folder = fs::weakly_canonical(program / place, error);
    if (fs::is_directory(folder, error)) return folder.string();
  }
  return "";
}

absl::Status ReadModels(const std::vector<std::string>& positional, Config& config) {
  config.strict = absl::GetFlag(FLAGS_strict);
  config.task = absl::GetFlag(FLAGS_task);
  const std::string given =
      positional.empty() ? absl::GetFlag(FLAGS_models) : absl::StrJoin(positional, ",");
  config.models = absl::StrSplit(given, ',', absl::SkipEmpty());
  if (!config.models.empty()) return absl::OkStatus();
  std::error_code error;
  const std::string fallback =
      std::filesystem::is_directory("/mnt/models", error) ? "/mnt/models" : BundledModels();
  if (fallback.empty() && config.mode == Mode::kServe) {
    return absl::InvalidArgumentError("flag --models: no models given and none are bundled here");
  }
  if (!fallback.empty()) config.models = {fallback};
  return absl::OkStatus();
}

bool IsHostName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
}

absl::Status ReadServerNames(Config& config) {
  config.server_names =
      absl::StrSplit(absl::GetFlag(FLAGS_server_names), ',', absl::SkipWhitespace());
  for (std::string& name : config.server_names) {
    absl::StripAsciiWhitespace(&name);
    if (!IsHostName(name)) return Bad("server_names", name, "a host name without a port");
  }
  auto origins = ParsePageOrigins(absl::GetFlag(FLAGS_cors_origins));
  if (!origins.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --cors_origins: ", origins.status().message()));
  }
  config.cors_origins = *std::move(origins);
  return absl::OkStatus();
}

absl::Status ReadAddress(Config& config) {
  config.host = absl::GetFlag(FLAGS_host);
  config.grpc_port = absl::GetFlag(FLAGS_grpc_port);
  config.http_port = absl::GetFlag(FLAGS_http_port);
  config.admin_port = absl::GetFlag(FLAGS_admin_port);
  if (config.host.empty()) return Bad("host", "", "an address, such as 127.0.0.1");
  for (const auto& [name, port] :
       {std::pair{"grpc_port", config.grpc_port}, std::pair{"http_port", config.http_port},
        std::pair{"admin_port", config.admin_port}}) {
    if (port < -1 || port > 65535) return Bad(name, absl::StrCat(port), "from -1 to 65535");
  }
  if (config.grpc_port > 0 && config.grpc_port == config.http_port) {
    return Bad("http_port", absl::StrCat(config.http_port), "another port than --grpc_port");
  }
  if (config.admin_port > 0 &&
      (config.admin_port == config.grpc_port || config.admin_port == config.http_port)) {
    return Bad("admin_port", absl::StrCat(config.admin_port),
               "another port than --grpc_port and --http_port");
  }
  if (config.grpc_port == -1 && config.http_port == -1) {
    return Bad("http_port", "-1", "on if --grpc_port is off");
  }
  return absl::OkStatus();
}

// Checks which security flags go together; the files' contents are checked when they are read.
absl::Status ReadSecurity(Config& config) {
  config.tls_cert = absl::GetFlag(FLAGS_tls_cert);
  config.tls_key = absl::GetFlag(FLAGS_tls_key);
  config.tls_client_ca = absl::GetFlag(FLAGS_tls_client_ca);
  config.api_keys_file = absl::GetFlag(FLAGS_api_keys_file);
  config.truncate = absl::GetFlag(FLAGS_truncate);
  config.refuse_token_ids = absl::GetFlag(FLAGS_refuse_token_ids);
  config.search_folder = absl::GetFlag(FLAGS_search_folder);
  std::error_code error;
  if (!config.search_folder.empty() &&
      !std::filesystem::is_directory(config.search_folder, error)) {
    return Bad("search_folder", config.search_folder, "a folder");
  }
  config.share_prefixes = absl::GetFlag(FLAGS_share_prefixes);
  config.trusted_proxies = absl::GetFlag(FLAGS_trusted_proxies);
  if (const auto proxies = TrustedProxies::Parse(config.trusted_proxies); !proxies.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --trusted_proxies: ", proxies.status().message()));
  }
  config.proxy_protocol = absl::GetFlag(FLAGS_proxy_protocol);
  if (config.proxy_protocol && config.trusted_proxies.empty()) {
    return Bad("trusted_proxies", "", "given with --proxy_protocol");
  }
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return Bad(config.tls_key.empty() ? "tls_key" : "tls_cert", "",
               absl::StrCat("given with --", config.tls_key.empty() ? "tls_cert" : "tls_key"));
  }
  if (!config.tls_client_ca.empty() && config.tls_cert.empty()) {
    return Bad("tls_client_ca", config.tls_client_ca, "given with --tls_cert and --tls_key");
  }
  const bool loopback =
      config.host == "localhost" || config.host == "::1" || config.host.starts_with("127.");
  config.allow_model_control =
      absl::GetFlag(FLAGS_allow_model_control).value_or(loopback || !config.api_keys_file.empty());
  return absl::OkStatus();
}

// cuda:0,cuda:1 and so on; whether they are there is for the machine to say.
bool IsDeviceList(std::string_view text) {
  static constexpr std::string_view kPrefix = "cuda:";
  const std::vector<std::string> devices = absl::StrSplit(std::string(text), ',');
  return std::all_of(devices.begin(), devices.end(), [](const std::string& device) {
    return device.starts_with(kPrefix) && device.size() > kPrefix.size() &&
           device.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
  });
}

absl::Status ReadCompute(Config& config) {
  config.device = absl::GetFlag(FLAGS_device);
  const bool cuda = config.device == "cuda" || IsDeviceList(config.device);
  if (config.device != "auto" && config.device != "cpu" && !cuda) {
    return Bad("device", config.device, "auto, cpu, cuda, or a list such as cuda:0,cuda:1");
  }
  config.dtype = absl::GetFlag(FLAGS_dtype);
  if (config.dtype == "fp16" && !cuda) {
    return Bad("dtype", "fp16", "auto, fp32, bf16 or int8 without --device=cuda");
  }
  if (config.dtype != "auto" && config.dtype != "fp32" && config.dtype != "bf16" &&
      config.dtype != "fp16" && config.dtype != "int8") {
    return Bad("dtype", config.dtype, "auto, fp32, bf16, fp16 or int8");
  }
  config.threads = absl::GetFlag(FLAGS_threads).value_or(CpuQuota());
  if (config.threads < 1 || config.threads > 1024) {
    return Bad("threads", absl::StrCat(config.threads), "from 1 to 1024");
  }
  return absl::OkStatus();
}

absl::Status ReadBytes(std::string_view flag, const std::string& text, uint64_t whole,
                       uint64_t least, uint64_t most, uint64_t& out) {
  const absl::StatusOr<uint64_t> bytes = ParseBytesOf(text, whole);
  if (!bytes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --", std::string(flag), ": ", bytes.status().message()));
  }
  if (*bytes < least || *bytes > most) {
    return Bad(flag, text, absl::StrCat("from ", least, " to ", most));
  }
  out = *bytes;
  return absl::OkStatus();
}

absl::Status ReadLimits(Config& config) {
  // gRPC counts message bytes in an int.
  constexpr uint64_t kMostMessageBytes = (uint64_t{1} << 31) - 1;
  if (auto read = ReadBytes("max_message_bytes", absl::GetFlag(FLAGS_max_message_bytes), 0, 1024,
                            kMostMessageBytes, config.max_message_bytes);
      !read.ok()) {
    return read;
  }
  if (auto read = ReadBytes("max_image_pixels", absl::GetFlag(FLAGS_max_image_pixels), 0, 1,
                            (uint64_t{1} << 31) - 1, config.max_image_pixels);
      !read.ok()) {
    return read;
  }
  if (auto read = ReadBytes("image_plan_bytes", absl::GetFlag(FLAGS_image_plan_bytes), 0, 0,
                            uint64_t{1} << 50, config.image_plan_bytes);
      !read.ok()) {
    return read;
  }
  if (auto read = ReadBytes("cache_bytes", absl::GetFlag(FLAGS_cache_bytes), AvailableMemory(), 0,
                            uint64_t{1} << 50, config.cache_bytes);
      !read.ok()) {
    return read;
  }
  if (config.cache_bytes == 0 && absl::GetFlag(FLAGS_cache_bytes).back() == '%') {
    config.warnings.push_back(absl::StrCat("flag --cache_bytes: ", absl::GetFlag(FLAGS_cache_bytes),
                                           " of the available memory is nothing; no model can "
                                           "generate"));
  }
  config.max_queue_seconds = absl::GetFlag(FLAGS_max_queue_seconds);
  if (!(config.max_queue_seconds > 0 && config.max_queue_seconds <= 86400)) {
    return Bad("max_queue_seconds", absl::StrCat(config.max_queue_seconds),
               "above 0 and at most 86400");
  }
  config.nested_share = absl::GetFlag(FLAGS_nested_share);
  if (!(config.nested_share >= 0 && config.nested_share <= 1)) {
    return Bad("nested_share", absl::StrCat(config.nested_share), "from 0 to 1");
  }
  return absl::OkStatus();
}

absl::Status ReadConnections(Config& config) {
  config.max_connections = absl::GetFlag(FLAGS_max_connections);
  config.max_connections_per_address = absl::GetFlag(FLAGS_max_connections_per_address);
  for (const auto& [name, count] :
       {std::pair{"max_connections", config.max_connections},
        std::pair{"max_connections_per_address", config.max_connections_per_address}}) {
    if (count < 0 || count > 1'000'000) return Bad(name, absl::StrCat(count), "from 0 to 1000000");
  }
  return absl::OkStatus();
}

absl::Status ReadTimes(Config& config) {
  config.drain_seconds = absl::GetFlag(FLAGS_drain_seconds);
  config.shutdown_seconds = absl::GetFlag(FLAGS_shutdown_seconds);
  config.max_connection_age_seconds = absl::GetFlag(FLAGS_max_connection_age_seconds);
  config.default_timeout_seconds = absl::GetFlag(FLAGS_default_timeout_seconds);
  config.max_timeout_seconds = absl::GetFlag(FLAGS_max_timeout_seconds);
  for (const auto& [name, seconds] :
       {std::pair{"drain_seconds", config.drain_seconds},
        std::pair{"shutdown_seconds", config.shutdown_seconds},
        std::pair{"max_connection_age_seconds", config.max_connection_age_seconds},
        std::pair{"default_timeout_seconds", config.default_timeout_seconds},
        std::pair{"max_timeout_seconds", config.max_timeout_seconds}}) {
    if (seconds < 0 || seconds > 86400) {
      return Bad(name, absl::StrCat(seconds), "from 0 to 86400");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadLog(Config& config) {
  const std::string format = absl::GetFlag(FLAGS_log_format);
  if (format == "text" || (format.empty() && isatty(STDERR_FILENO) != 0)) {
    config.log_format = LogFormat::kText;
  } else if (format == "json" || format.empty()) {
    config.log_format = LogFormat::kJson;
  } else {
    return Bad("log_format", format, "text or json");
  }
  const std::string level = absl::GetFlag(FLAGS_log_level);
  const std::optional<LogLevel> parsed = ParseLogLevel(level);
  if (!parsed) return Bad("log_level", level, "debug, info, warning or error");
  config.log_level = *parsed;
  return absl::OkStatus();
}

absl::Status ReadTracing(Config& config) {
  config.otlp_endpoint = absl::GetFlag(FLAGS_otlp_endpoint);
  std::string_view address = config.otlp_endpoint;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (address.starts_with(scheme)) address.remove_prefix(scheme.size());
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  const bool whole =
      colon != std::string_view::npos && colon > 0 &&
      absl::SimpleAtoi(absl::string_view(address.data() + colon + 1, address.size() - colon - 1),
                       &port) &&
      port > 0 && port <= 65535 && address.find('/') == std::string_view::npos;
  if (!config.otlp_endpoint.empty() && !whole) {
    return Bad("otlp_endpoint", config.otlp_endpoint,
               "host:port of a collector's gRPC receiver, with http:// or https:// before it or "
               "without");
  }
  config.trace_sample_ratio = absl::GetFlag(FLAGS_trace_sample_ratio);
  if (!(config.trace_sample_ratio >= 0 && config.trace_sample_ratio <= 1)) {
    return Bad("trace_sample_ratio", absl::StrCat(config.trace_sample_ratio), "from 0 to 1");
  }
  return absl::OkStatus();
}

absl::Status ReadQuantize(Config& config) {
  config.texts = absl::GetFlag(FLAGS_texts);
  config.pictures = absl::GetFlag(FLAGS_pictures);
  config.dry_run = absl::GetFlag(FLAGS_dry_run);
  const bool given = !config.texts.empty() || !config.pictures.empty();
  if (config.quantize_directory.empty()) {
    if (!given && !config.dry_run) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "flags --texts, --pictures and --dry_run mean nothing without --quantize");
  }
  if (!given) return Bad("texts", "", "given with --quantize, or --pictures for a model of these");
  if (config.device == "auto" || config.device == "cpu") return absl::OkStatus();
  return Bad("device", config.device, "cpu with --quantize: int8 is served on CPUs");
}

void AddProblem(const absl::Status& status, std::vector<std::string>& problems) {
  if (!status.ok()) problems.emplace_back(status.message());
}

Mode ReadMode(Config& config) {
  config.check_directory = absl::GetFlag(FLAGS_check);
  config.quantize_directory = absl::GetFlag(FLAGS_quantize);
  if (absl::GetFlag(FLAGS_help)) return Mode::kHelp;
  if (absl::GetFlag(FLAGS_version)) return Mode::kVersion;
  if (!config.check_directory.empty()) return Mode::kCheck;
  if (!config.quantize_directory.empty()) return Mode::kQuantize;
  if (absl::GetFlag(FLAGS_print_config)) return Mode::kPrintConfig;
  if (absl::GetFlag(FLAGS_validate_config)) return Mode::kValidateConfig;
  return Mode::kServe;
}

}  // namespace

absl::StatusOr<Config> LoadConfig(int argc, char** argv, char** environment) {
  Config config;
  std::vector<std::string> positional;
  config.config_file = FindConfigFile(argc, argv, environment);
  if (!config.config_file.empty()) {
    RETURN_IF_ERROR(ApplyFile(config.config_file));
  }
  if (auto applied = ApplyEnvironment(environment, config.warnings); !applied.ok()) return applied;
  if (auto applied = ApplyArguments(argc, argv, positional); !applied.ok()) return applied;
  config.mode = ReadMode(config);
  std::vector<std::string> problems;  // All flags are checked, so that all problems are told.
  for (auto* read : {&ReadAddress, &ReadServerNames, &ReadSecurity, &ReadCompute, &ReadLimits,
                     &ReadConnections, &ReadTimes, &ReadLog, &ReadTracing, &ReadQuantize}) {
    AddProblem((*read)(config), problems);
  }
  AddProblem(ReadModels(positional, config), problems);
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "; "));
  return config;
}

absl::StatusOr<std::optional<LogLevel>> ReadLogLevel(const std::string& config_file) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadFileKey(config_file, "log_level"));
  if (!text.has_value()) return std::nullopt;
  const std::optional<LogLevel> level = ParseLogLevel(*text);
  if (!level) return Bad("log_level", *text, "debug, info, warning or error");
  return level;
}

std::string ConfigJson(const Config& config) {
  const nlohmann::ordered_json json = {
      {"models", config.models},
      {"strict", config.strict},
      {"task", config.task},
      {"grpc_port", config.grpc_port},
      {"http_port", config.http_port},
      {"admin_port", config.admin_port},
      {"host", config.host},
      {"server_names", absl::StrJoin(config.server_names, ",")},
      {"cors_origins", absl::StrJoin(config.cors_origins, ",")},
      {"device", config.device},
      {"dtype", config.dtype},
      {"threads", config.threads},
      {"max_message_bytes", config.max_message_bytes},
      {"max_queue_seconds", config.max_queue_seconds},
      {"nested_share", config.nested_share},
      {"max_image_pixels", config.max_image_pixels},
      {"image_plan_bytes", config.image_plan_bytes},
      {"truncate", config.truncate},
      {"refuse_token_ids", config.refuse_token_ids},
      {"search_folder", config.search_folder},
      {"cache_bytes", config.cache_bytes},
      {"log_format", config.log_format == LogFormat::kJson ? "json" : "text"},
      {"log_level", LogLevelName(config.log_level)},
      {"otlp_endpoint", config.otlp_endpoint},
      {"trace_sample_ratio", config.trace_sample_ratio},
      {"tls_cert", config.tls_cert},
      {"tls_key", config.tls_key},
      {"tls_client_ca", config.tls_client_ca},
      {"api_keys_file", config.api_keys_file},
      {"share_prefixes", config.share_prefixes},
      {"trusted_proxies", config.trusted_proxies},
      {"proxy_protocol", config.proxy_protocol},
      {"allow_model_control", config.allow_model_control},
      {"drain_seconds", config.drain_seconds},
      {"shutdown_seconds", config.shutdown_seconds},
      {"max_connection_age_seconds", config.max_connection_age_seconds},
      {"max_connections", config.max_connections},
      {"max_connections_per_address", config.max_connections_per_address},
      {"default_timeout_seconds", config.default_timeout_seconds},
      {"max_timeout_seconds", config.max_timeout_seconds},
  };
  return json.dump(2);
}

std::string HelpText() {
  std::string text =
      "longview-server [flags] [model path ...]\n"
      "Serves models for long documents over gRPC and HTTP.\n\n";
  for (const std::string_view name : FlagNames()) {
    const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag({name.data(), name.size()});
    absl::StrAppend(&text, "  --", flag->Name(), "  ", flag->Help());
    if (!flag->DefaultValue().empty()) absl::StrAppend(&text, " (", flag->DefaultValue(), ")");
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, "\nA request's head over HTTP and the metadata of a gRPC call may have ",
                  kMaxHeadBytes >> 10, " KiB each. An HTTP connection that idles for ",
                  kMaxIdleSeconds, " s is closed.\n",
                  "\nEvery flag can also come from the environment (LONGVIEW_GRPC_PORT=9000) or "
                  "from --config file.json.\n");
  return text;
}

std::string VersionText() {
  return absl::StrCat("longview ", kVersion, "\ncommit ", kCommit, "\n");
}

}  // namespace longview::server
