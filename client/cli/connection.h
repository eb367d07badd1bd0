// The server that a command talks to.
//
// Thread-safe once opened.
#pragma once

#include <memory>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/console.h"
#include "client/cpp/client.h"

namespace longview::client {

struct Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Client> client;
};

// Connects, or says on console.err why not and returns the exit code to leave with.
ExitCode Connect(const CommandLine& line, Console& console, Connection* connection);

// The model a request goes to: --model, or the only loaded model with the task (any task if it is
// empty), or of several the only one made for it, or if there is none, the only one that is
// loading. Otherwise a message on console.err and kUsage.
ExitCode ChooseModel(const Client& client, const CommandLine& line, const std::string& task,
                     Console& console, v1::Model* model);

// Whether it is the model's task, or one of its others; any has the task "".
bool HasTask(const v1::Model& model, const std::string& task);

// The gRPC name of a code, e.g. INVALID_ARGUMENT.
std::string CodeName(grpc::StatusCode code);

// "CODE: message", and the value of --timeout where that is what ended the call.
std::string Explain(const grpc::Status& status, const CommandLine& line);

}  // namespace longview::client
