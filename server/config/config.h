// The server's configuration: flags, environment and file merged into one struct.
//
// Precedence: --config file.json < environment LONGVIEW_<FLAG> < flag. Positional arguments
// are model paths. Flag names accept dashes for underscores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/log/log.h"

namespace longview::server {

// The program's task: serving, or one of the things it does instead.
enum class Mode { kServe, kCheck, kQuantize, kPrintConfig, kValidateConfig, kVersion, kHelp };

// Checked values with every default filled in.
struct Config {
  Mode mode = Mode::kServe;
  std::string check_directory;
  std::string quantize_directory;
  std::string texts;     // A file or a folder; with `quantize_directory` this or `pictures` is set.
  std::string pictures;  // A folder.
  bool dry_run = false;
  std::string config_file;          // --config; empty = none.
  std::vector<std::string> models;  // Each a path, a directory of models, or name=path.
  bool strict = false;              // No model of a folder may fail to load.
  std::string
      task;  // The task of every model, for the caller to check; empty = as their files say.
  std::string host;
  std::vector<std::string> server_names;  // Other names of this server.
  std::vector<std::string> cors_origins;  // Pages that may call, as ParsePageOrigins gives them.
  int grpc_port = 0;                      // 0 = a free one, -1 = off.
  int http_port = 0;
  int admin_port = -1;
  std::string device;                // The flag's value: auto, cpu, cuda, cuda:0,cuda:1.
  std::vector<std::string> devices;  // Devices present, best first; the caller fills them in.
  std::string dtype;
  int threads = 0;
  uint64_t max_message_bytes = 0;
  double max_queue_seconds = 0;
  double nested_share = 0;
  uint64_t max_image_pixels = 0;
  uint64_t image_plan_bytes = 0;
  bool truncate = false;
  bool refuse_token_ids = false;
  std::string search_folder;  // Empty = none.
  uint64_t cache_bytes = 0;
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  std::string otlp_endpoint;  // The collector's address; empty = no spans are sent.
  double trace_sample_ratio = 0;
  std::string tls_cert;       // Path; set if and only if `tls_key` is.
  std::string tls_key;        // Path.
  std::string tls_client_ca;  // Path; empty = clients need no certificate.
  std::string api_keys_file;  // Empty = calls need no key.
  bool share_prefixes = false;
  std::string trusted_proxies;  // Checked; as TrustedProxies::Parse reads it.
  bool proxy_protocol = false;  // Connections of trusted proxies begin with its header.
  bool allow_model_control = false;
  int drain_seconds = 0;
  int shutdown_seconds = 0;
  int max_connection_age_seconds = 0;
  int max_connections = 0;  // Per port; 0 = derived from the descriptor limit.
  int max_connections_per_address = 0;
  int default_timeout_seconds = 0;  // 0 = none.
  int max_timeout_seconds = 0;      // 0 = none.

  std::vector<std::string> warnings;  // To be logged once the log exists.
};

// Parses and checks. INVALID_ARGUMENT names the flag, the value and what is allowed.
//
// Uses absl's process-wide flag registry: call once per process, from main.
absl::StatusOr<Config> LoadConfig(int argc, char** argv, char** environment);

// The log level that a --config file names now; nothing if it names none. INVALID_ARGUMENT names
// the file and what is wrong.
absl::StatusOr<std::optional<LogLevel>> ReadLogLevel(const std::string& config_file);

// The merged configuration as a JSON object of flag names. Never holds a key.
std::string ConfigJson(const Config& config);

// The text of --help.
std::string HelpText();

// "longview <semver>", then one line each: commit, compiler, libraries.
std::string VersionText();

}  // namespace longview::server
