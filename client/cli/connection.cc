#include "client/cli/connection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/diagnosis.h"
#include "client/cli/terminal.h"
#include "client/cpp/channel.h"

namespace longview::client {
namespace {

constexpr double kConnectSeconds = 5;
// A shorter --timeout is for the calls to miss, which then say so.
constexpr double kLeastConnectSeconds = 1;

// The names of the models in a state that have the task; *chosen is the last of them. If several
// can do it and it is what one of them is for, that one alone.
std::vector<std::string> Choose(const v1::ListModelsResponse& listed, const std::string& task,
                                const std::string& state, v1::Model* chosen) {
  std::vector<std::string> names;
  std::vector<const v1::Model*> made_for_it;
  for (const v1::Model& model : listed.models()) {
    if (model.state() != state || !HasTask(model, task)) continue;
    names.push_back(model.name());
    *chosen = model;
    if (model.task() == task) made_for_it.push_back(&model);
  }
  if (names.size() < 2 || made_for_it.size() != 1) return names;
  *chosen = *made_for_it[0];
  return {chosen->name()};
}

// False as soon as a try has failed: the diagnosis says more than another try.
bool ConnectsWithin(grpc::Channel& channel, double seconds) {
  constexpr double kSlice = 0.1;
  for (double waited = 0; waited < seconds; waited += kSlice) {
    if (WaitUntilConnected(channel, std::min(kSlice, seconds - waited))) return true;
    if (channel.GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE) return false;
  }
  return false;
}

}  // namespace

std::string CodeName(grpc::StatusCode code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

std::string Explain(const grpc::Status& status, const CommandLine& line) {
  std::string text = absl::StrCat(CodeName(status.error_code()), ": ", status.error_message());
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && line.timeout_seconds > 0) {
    absl::StrAppend(&text, " (--timeout is ", line.timeout_seconds, " s)");
  }
  return text;
}

bool HasTask(const v1::Model& model, const std::string& task) {
  return task.empty() || model.task() == task ||
         std::find(model.tasks().begin(), model.tasks().end(), task) != model.tasks().end();
}

ExitCode Connect(const CommandLine& line, Console& console, Connection* connection) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = OpenChannel({.server = line.server,
                                                                        .tls = line.tls,
                                                                        .ca_file = line.ca,
                                                                        .cert_file = line.cert,
                                                                        .key_file = line.key});
  if (!channel.ok()) {
    Error(console) << channel.status().message() << "\n";
    return kUsage;
  }
  const double patience =
      line.timeout_seconds > 0
          ? std::clamp(line.timeout_seconds, kLeastConnectSeconds, kConnectSeconds)
          : kConnectSeconds;
  if (!AcceptsConnections(line.server) || !ConnectsWithin(**channel, patience)) {
    Error(console) << DiagnoseConnection(line) << "\n";
    return kServerNotReached;
  }
  connection->channel = *channel;
  ClientOptions options;
  options.timeout_seconds = line.timeout_seconds;
  options.api_key = line.api_key;
  connection->client = std::make_unique<Client>(*channel, std::move(options));
  return kAllWell;
}

ExitCode ChooseModel(const Client& client, const CommandLine& line, const std::string& task,
                     Console& console, v1::Model* model) {
  v1::ListModelsResponse listed;
  const grpc::Status status = client.ListModels(&listed);
  if (!status.ok()) {
    console.err << "longview: cannot list models: " << Explain(status, line) << "\n";
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ? kServerNotReached
                                                                : kSomeInputFailed;
  }
  if (!line.model.empty()) {
    // The server judges a name it does not list, and says which there are.
    model->set_name(line.model);
    for (const v1::Model& each : listed.models()) {
      if (each.name() == line.model) *model = each;
    }
    return kAllWell;
  }
  std::vector<std::string> names = Choose(listed, task, "READY", model);
  // While a model loads, the server refuses calls to it with a delay, and they are repeated.
  if (names.empty()) names = Choose(listed, "", "LOADING", model);
  if (names.size() == 1) return kAllWell;
  const std::string wanted = task.empty() ? "" : " for " + task;
  if (names.empty()) {
    console.err << "longview: no model" << wanted << " is loaded; `longview models` lists all\n";
  } else {
    console.err << "longview: --model is needed, several models" << wanted
                << " are loaded: " << absl::StrJoin(names, ", ") << "\n";
  }
  return kUsage;
}

}  // namespace longview::client
