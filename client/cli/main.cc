#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/commands.h"

int main(int argc, char** argv) {
  // A closed pipe (`longview ... | head`) means that no more is wanted: end quietly.
  std::signal(SIGPIPE, SIG_DFL);
  // Failed connections are explained in plain words (connection.h).
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
  // https://no-color.org
  const bool colors = environment("NO_COLOR").value_or("").empty() &&
                      environment("TERM").value_or("dumb") != "dumb";
  const bool err = isatty(STDERR_FILENO) != 0, out = isatty(STDOUT_FILENO) != 0;
  longview::client::Console console{std::cin, std::cout,     std::cerr,    err,
                                    out,      err && colors, out && colors};
  return longview::client::RunLongview(std::vector<std::string>(argv + 1, argv + argc), environment,
                                       console);
}
