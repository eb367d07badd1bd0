// Why no gRPC connection comes about: asks the address in plain TCP.
// Thread-safe: a pure function of the network.
#pragma once

#include <string>

#include "client/cli/command_line.h"

namespace longview::client {

// One line for a person, within about two seconds; what can be done about it stands in it.
std::string DiagnoseConnection(const CommandLine& line);

// Whether anything accepts connections at the address: cheap, at once on the same machine.
bool AcceptsConnections(const std::string& server);

}  // namespace longview::client
