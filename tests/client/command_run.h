// Runs commands of the program in this process, against a fake server.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "tests/client/fake_server.h"
#include "tests/client/test_folder.h"

namespace longview::client {

class CommandRun : public TestFolder {
 protected:
  enum class Output { kPiped, kProgress, kTerminal };

  // Leaves what the command wrote in out_ and err_. kProgress: the error stream alone is a
  // terminal; kTerminal: both are, with colours.
  int Run(std::vector<std::string> arguments, Output output = Output::kPiped) {
    out_.str("");
    err_.str("");
    arguments.push_back("--server=" + server_.Address());
    const bool terminal = output == Output::kTerminal;
    Console console{in_, out_, err_, output != Output::kPiped, terminal, terminal, terminal};
    const auto environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional(found->second);
    };
    return RunLongview(arguments, environment, console);
  }

  std::vector<std::string> TextLines() {
    std::vector<std::string> lines;
    std::istringstream stream(out_.str());
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  // The objects that --json prints.
  std::vector<nlohmann::json> Lines() {
    std::vector<nlohmann::json> lines;
    for (const std::string& line : TextLines()) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  FakeServer server_;
  std::map<std::string, std::string> environment_;
  std::istringstream in_;
  std::ostringstream out_, err_;
};

}  // namespace longview::client
