// The three places a flag's value can come from, applied to absl's flag registry.
//
// Each sets flags by name and returns INVALID_ARGUMENT naming the source, the flag and the
// value. Unknown names are errors in files and on the command line, warnings in the
// environment (Kubernetes injects LONGVIEW_HTTP_PORT=tcp://... for a Service of that name), but for
// the variables of the project's other programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longview::server {

// Names of longview-server's flags, in the order of the documentation.
const std::vector<std::string_view>& FlagNames();

absl::Status ApplyFile(const std::string& path);

// The text of one key of a --config file as it is now; nothing if it is not there. The registry
// stays as it is.
absl::StatusOr<std::optional<std::string>> ReadFileKey(const std::string& path,
                                                       std::string_view name);

absl::Status ApplyEnvironment(char** environment, std::vector<std::string>& warnings);

// Accepts --name=value, --name value, --flag, --noflag, dashes for underscores.
absl::Status ApplyArguments(int argc, char** argv, std::vector<std::string>& positional);

// The value of --config as the command line or the environment gives it; "" if neither does.
std::string FindConfigFile(int argc, char** argv, char** environment);

}  // namespace longview::server
