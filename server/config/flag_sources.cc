#include "server/config/flag_sources.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/flags/reflection.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "models/status_macros.h"
#include "server/nearest_name.h"

namespace longview::server {
namespace {

constexpr std::string_view kEnvironmentPrefix = "LONGVIEW_";

// Variables that the command line, the scripts in deploy/ and the tests read under the same prefix,
// without it. tests/structure/test_variables.py keeps the list whole.
constexpr std::string_view kOtherPrograms[] = {
    "ANY_LOAD",     "API_KEY", "BIN",         "BUILD",          "CLUSTER", "CLUSTER_LOGS",
    "FAULT_SWITCH", "GOLDEN",  "IMAGE",       "JOURNALS",       "LOADAVG", "PREFIX",
    "REAL",         "REPORTS", "SCREENSHOTS", "SEED",           "SERVER",  "SOAK_MINUTES",
    "STSB",         "SUITES",  "TARBALL",     "TRANSFORMER_LS", "VIL"};

bool IsOfAnotherProgram(std::string_view name) {
  return std::find(std::begin(kOtherPrograms), std::end(kOtherPrograms), name) !=
         std::end(kOtherPrograms);
}

bool IsKnown(std::string_view name) {
  const auto& names = FlagNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::CommandLineFlag* FindFlag(std::string_view name) {
  return IsKnown(name) ? absl::FindCommandLineFlag({name.data(), name.size()}) : nullptr;
}

bool IsBoolean(const absl::CommandLineFlag& flag) {
  return flag.IsOfType<bool>() || flag.IsOfType<absl::optional<bool>>();
}

absl::Status SetFlag(absl::CommandLineFlag& flag, const std::string& source,
                     const std::string& value) {
  std::string error;
  if (flag.ParseFrom(value, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": '", value, "' is not a value for ", flag.Name(), ": ", error));
}

// One argument split at '='; name with underscores, without dashes in front.
struct Argument {
  std::string name;
  std::optional<std::string> value;
};

std::optional<Argument> ParseArgument(std::string_view text) {
  if (text.size() < 2 || text[0] != '-') return std::nullopt;
  text.remove_prefix(text[1] == '-' ? 2 : 1);
  const size_t equals = text.find('=');
  Argument argument;
  argument.name = std::string(text.substr(0, equals));
  std::replace(argument.name.begin(), argument.name.end(), '-', '_');
  if (equals != std::string_view::npos) argument.value = std::string(text.substr(equals + 1));
  return argument;
}

absl::StatusOr<std::string> JsonToText(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  if (!value.is_array()) {
    return absl::InvalidArgumentError("must be a string, a number, a boolean or a list of strings");
  }
  std::string joined;
  for (const auto& element : value) {
    if (!element.is_string()) return absl::InvalidArgumentError("lists hold strings only");
    absl::StrAppend(&joined, joined.empty() ? "" : ",", element.get<std::string>());
  }
  return joined;
}

std::string SourceOf(const std::string& path) { return absl::StrCat("config file ", path); }

absl::StatusOr<nlohmann::json> ReadObject(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::InvalidArgumentError(absl::StrCat(SourceOf(path), ": cannot be read"));
  nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(SourceOf(path), ": is not a JSON object"));
  }
  return json;
}

}  // namespace

const std::vector<std::string_view>& FlagNames() {
  static const auto& names = *new std::vector<std::string_view>{"config",
                                                                "models",
                                                                "strict",
                                                                "task",
                                                                "grpc_port",
                                                                "http_port",
                                                                "admin_port",
                                                                "host",
                                                                "server_names",
                                                                "cors_origins",
                                                                "device",
                                                                "dtype",
                                                                "threads",
                                                                "max_message_bytes",
                                                                "max_queue_seconds",
                                                                "nested_share",
                                                                "max_image_pixels",
                                                                "image_plan_bytes",
                                                                "truncate",
                                                                "refuse_token_ids",
                                                                "search_folder",
                                                                "cache_bytes",
                                                                "log_format",
                                                                "log_level",
                                                                "otlp_endpoint",
                                                                "trace_sample_ratio",
                                                                "tls_cert",
                                                                "tls_key",
                                                                "tls_client_ca",
                                                                "api_keys_file",
                                                                "share_prefixes",
                                                                "trusted_proxies",
                                                                "proxy_protocol",
                                                                "allow_model_control",
                                                                "drain_seconds",
                                                                "shutdown_seconds",
                                                                "max_connection_age_seconds",
                                                                "max_connections",
                                                                "max_connections_per_address",
                                                                "default_timeout_seconds",
                                                                "max_timeout_seconds",
                                                                "check",
                                                                "quantize",
                                                                "texts",
                                                                "pictures",
                                                                "dry_run",
                                                                "print_config",
                                                                "validate_config",
                                                                "version",
                                                                "help"};
  return names;
}

absl::Status ApplyFile(const std::string& path) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadObject(path));
  const std::string source = SourceOf(path);
  for (const auto& [name, value] : json.items()) {
    absl::CommandLineFlag* const flag = name == "config" ? nullptr : FindFlag(name);
    if (flag == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": unknown key '", name, "'", DidYouMean("", name, FlagNames())));
    }
    const absl::StatusOr<std::string> text = JsonToText(value);
    if (!text.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": '", name, "' ", text.status().message()));
    }
    RETURN_IF_ERROR(SetFlag(*flag, source, *text));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> ReadFileKey(const std::string& path,
                                                       std::string_view name) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadObject(path));
  const auto found = json.find(std::string(name));
  if (found == json.end()) return std::nullopt;
  return JsonToText(*found);
}

absl::Status ApplyEnvironment(char** environment, std::vector<std::string>& warnings) {
  std::string ignored;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(kEnvironmentPrefix)) continue;
    const size_t equals = text.find('=');
    const std::string variable(text.substr(0, equals));
    const std::string value(text.substr(equals + 1));
    const std::string name = variable.substr(kEnvironmentPrefix.size());
    absl::CommandLineFlag* const flag = FindFlag(absl::AsciiStrToLower(name));
    if (flag == nullptr && IsOfAnotherProgram(name)) continue;
    // No flag of this program: one warning for all.
    if (flag == nullptr || value.starts_with("tcp://")) {
      absl::StrAppend(&ignored, ignored.empty() ? "" : ", ", variable);
      continue;
    }
    RETURN_IF_ERROR(SetFlag(*flag, absl::StrCat("environment ", variable), value));
  }
  if (!ignored.empty()) {
    warnings.push_back(absl::StrCat("environment variables that are no flags: ", ignored));
  }
  return absl::OkStatus();
}

absl::Status ApplyArguments(int argc, char** argv, std::vector<std::string>& positional) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text == "--") {
      positional.insert(positional.end(), argv + i + 1, argv + argc);
      break;
    }
    const std::optional<Argument> argument = ParseArgument(text);
    if (!argument) {
      positional.emplace_back(text);
      continue;
    }
    absl::CommandLineFlag* flag = FindFlag(argument->name);
    std::optional<std::string> value = argument->value;
    if (flag == nullptr && argument->name.starts_with("no") && !value) {
      flag = FindFlag(argument->name.substr(2));
      if (flag != nullptr && !IsBoolean(*flag)) flag = nullptr;
      value = "false";
    }
    if (flag == nullptr) {
      const std::string nearest = DidYouMean("--", argument->name, FlagNames());
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag '", argv[i], "'", nearest, "; --help lists the flags"));
    }
    if (!value && IsBoolean(*flag)) value = "true";
    if (!value) {
      if (i + 1 == argc) {
        return absl::InvalidArgumentError(
            absl::StrCat("flag --", argument->name, " needs a value"));
      }
      value = argv[++i];
    }
    RETURN_IF_ERROR(SetFlag(*flag, "flag", *value));
  }
  return absl::OkStatus();
}

std::string FindConfigFile(int argc, char** argv, char** environment) {
  std::string path;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    constexpr std::string_view kVariable = "LONGVIEW_CONFIG=";
    if (std::string_view(*entry).starts_with(kVariable)) path = *entry + kVariable.size();
  }
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::optional<Argument> argument = ParseArgument(argv[i]);
    if (!argument || argument->name != "config") continue;
    if (argument->value) {
      path = *argument->value;
    } else if (i + 1 < argc) {
      path = argv[i + 1];
    }
  }
  return path;
}

}  // namespace longview::server
