// `longview models --check DIR`: what the server says about a model directory.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace longview::client {

// Runs `server_program --check directory`, which prints the explanation on this process's
// standard output, and returns its exit status. An error if the program cannot be run.
absl::StatusOr<int> CheckDirectory(const std::string& server_program, const std::string& directory);

// The longview-server in the folder of this program.
std::string ServerBesideThisProgram();

}  // namespace longview::client
