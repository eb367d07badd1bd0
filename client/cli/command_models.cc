#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/json_lines.h"
#include "client/cli/server_program.h"
#include "client/cli/terminal.h"

namespace longview::client {
namespace {

ExitCode Check(const std::string& directory, Console& console) {
  console.out.flush();
  const absl::StatusOr<int> status =
      RunServerProgram(ServerBesideThisProgram(), {"--check=" + directory});
  if (!status.ok()) {
    Error(console) << status.status().message() << "\n";
    return kSomeInputFailed;
  }
  return *status == 0 ? kAllWell : kSomeInputFailed;
}

Color ColorOf(const std::string& state) {
  if (state == "READY") return Color::kGood;
  return state == "UNAVAILABLE" ? Color::kBad : Color::kWarning;
}

std::vector<Cell> Describe(const v1::Model& model) {
  std::vector<Cell> cells = {
      {model.name()},
      {absl::StrCat("version ", model.version())},
      {model.state(), ColorOf(model.state())},
      {model.task()},
      {model.family()},
      {absl::StrFormat("%.1f M parameters", model.parameters() / 1e6)},
      {absl::StrCat(model.dtype(), " on ", model.device())},
      {absl::StrFormat("%.0f MB", model.memory_bytes() / 1e6)},
  };
  if (model.max_tokens() > 0) {
    cells.push_back({absl::StrCat("up to ", model.max_tokens(), " tokens")});
  }
  if (!model.reason().empty()) cells.push_back({model.reason()});
  return cells;
}

}  // namespace

ExitCode RunModels(const CommandLine& line, Console& console) {
  if (!line.check.empty()) return Check(line.check, console);
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::ListModelsResponse response;
  const grpc::Status status = connection.client->ListModels(&response);
  if (!status.ok()) {
    Error(console) << Explain(status, line) << "\n";
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ? kServerNotReached
                                                                : kSomeInputFailed;
  }
  Table table;
  for (const v1::Model& model : response.models()) {
    if (line.json) {
      console.out << ToJson(model) << "\n";
    } else {
      table.push_back(Describe(model));
    }
  }
  PrintTable(table, console);
  return kAllWell;
}

}  // namespace longview::client
