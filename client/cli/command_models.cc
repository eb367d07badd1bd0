#include "absl/strings/str_format.h"
#include "client/cli/check_directory.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/json_lines.h"

namespace longview::client {
namespace {

ExitCode Check(const std::string& directory, Console& console) {
  console.out.flush();
  const absl::StatusOr<int> status = CheckDirectory(ServerBesideThisProgram(), directory);
  if (!status.ok()) {
    console.err << "longview: " << status.status().message() << "\n";
    return kSomeInputFailed;
  }
  return *status == 0 ? kAllWell : kSomeInputFailed;
}

std::string Describe(const v1::Model& model) {
  std::string text = absl::StrFormat(
      "%s\tversion %s\t%s\t%s\t%s\t%.1f M parameters\t%s on %s\t%.0f MB", model.name(),
      model.version(), model.state(), model.task(), model.family(), model.parameters() / 1e6,
      model.dtype(), model.device(), model.memory_bytes() / 1e6);
  if (model.max_tokens() > 0) text += absl::StrFormat("\tup to %d tokens", model.max_tokens());
  if (!model.reason().empty()) text += "\t" + model.reason();
  return text;
}

}  // namespace

ExitCode RunModels(const CommandLine& line, Console& console) {
  if (!line.check.empty()) return Check(line.check, console);
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::ListModelsResponse response;
  const grpc::Status status = connection.client->ListModels(&response);
  if (!status.ok()) {
    console.err << "longview: " << CodeName(status.error_code()) << ": " << status.error_message()
                << "\n";
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ? kServerNotReached
                                                                : kSomeInputFailed;
  }
  for (const v1::Model& model : response.models()) {
    console.out << (line.json ? ToJson(model) : Describe(model)) << "\n";
  }
  return kAllWell;
}

}  // namespace longview::client
