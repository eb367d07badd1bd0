// Runs the server's program for commands that need models, which this program has none of:
// `longview models --check DIR` and `longview quantize DIR`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::client {

// Runs `program` with these flags, its standard streams being this process's, and returns its exit
// status. An error if it cannot be run.
absl::StatusOr<int> RunServerProgram(const std::string& program, std::vector<std::string> flags);

// The longview-server in the folder of this program.
std::string ServerBesideThisProgram();

}  // namespace longview::client
