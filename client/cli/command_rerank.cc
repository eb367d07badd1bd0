#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/inputs.h"
#include "client/cli/json_lines.h"
#include "client/cli/terminal.h"

namespace longview::client {
namespace {

void PrintError(const CommandLine& line, const std::string& path, const grpc::Status& status,
                Console& console) {
  if (line.json) {
    console.out << ErrorLine(path, status) << "\n";
  } else {
    Error(console) << path << ": " << CodeName(status.error_code()) << ": "
                   << status.error_message() << "\n";
  }
}

}  // namespace

// One call for all inputs that can be read.
ExitCode RunRerank(const CommandLine& line, Console& console) {
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::Model model;
  const ExitCode chosen = ChooseModel(*connection.client, line, "rerank", console, &model);
  if (chosen != kAllWell) return chosen;
  v1::RerankRequest request;
  request.set_model(model.name());
  request.set_query(line.query);
  if (line.truncate) request.set_truncate(true);
  request.set_raw_scores(line.raw_scores);
  request.set_top_n(line.top_n.value_or(0));
  std::vector<std::string> paths;  // One for each document.
  bool failed = false;
  for (const Input& input : ListInputs(line.inputs)) {
    absl::StatusOr<std::string> text = ReadInput(input, {.lossy = line.lossy}, console.in);
    if (text.ok()) {
      request.add_documents(*std::move(text));
      paths.push_back(input.path);
      continue;
    }
    failed = true;
    PrintError(line, input.path,
               grpc::Status(static_cast<grpc::StatusCode>(text.status().code()),
                            std::string(text.status().message())),
               console);
  }
  if (paths.empty()) return kSomeInputFailed;
  v1::RerankResponse response;
  if (const grpc::Status status = connection.client->Rerank(request, &response); !status.ok()) {
    Error(console) << CodeName(status.error_code()) << ": " << status.error_message() << "\n";
    return kSomeInputFailed;
  }
  for (const v1::RerankResult& result : response.results()) {
    const std::string& path = paths[static_cast<size_t>(result.index())];
    if (line.json) {
      console.out << AnswerLine(path, ToJson(result)) << "\n";
    } else {
      console.out << path << absl::StrFormat("\t%.4f\n", result.relevance_score());
    }
  }
  return failed ? kSomeInputFailed : kAllWell;
}

}  // namespace longview::client
