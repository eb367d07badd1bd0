// Runs a request for every input, several at a time, and prints the answers in input order.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/console.h"
#include "client/cpp/client.h"

namespace longview::client {

// The outcome of one input.
struct Outcome {
  grpc::Status status;
  std::string json;              // The typed answer as a JSON object, without `input`.
  std::string text;              // The answer for people: one line without the path.
  int64_t tokens = 0;            // Tokens read, for the summary.
  int64_t truncated_tokens = 0;  // Tokens cut off.

  void Count(const v1::Usage& usage) {
    tokens = usage.input_tokens();
    truncated_tokens = usage.truncated_tokens();
  }
};

// Sends one document or picture; called by several threads at once.
using Request = std::function<Outcome(const std::string& content)>;

// A Request that also gets the path of the input, for commands that write a file of its name.
using NamedRequest = std::function<Outcome(const std::string& path, const std::string& content)>;

// Answers go to console.out in the order of the inputs, as soon as all before them are there:
// with --json one object per line with the member `input`, else "path<TAB>text". A failed input is
// a JSON line with `error`, else a line on console.err; the others go on. Progress is shown on
// console.err if that is a terminal, and a summary (summary.h) after several inputs.
ExitCode RunOverInputs(const CommandLine& line, Console& console, const Request& request);
ExitCode RunOverNamedInputs(const CommandLine& line, Console& console, const NamedRequest& request);

}  // namespace longview::client
