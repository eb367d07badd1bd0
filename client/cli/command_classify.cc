#include <memory>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/json_lines.h"
#include "client/cli/over_inputs.h"

namespace longview::client {
namespace {

std::string LabelsOf(const v1::ClassifyResponse& response) {
  std::string text;
  for (const v1::Label& label : response.labels()) {
    if (!text.empty()) text += "\t";
    text += absl::StrFormat("%s %.4f", label.name(), label.score());
  }
  return text;
}

}  // namespace

ExitCode RunClassify(const CommandLine& line, Console& console) {
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::Model model;
  const ExitCode chosen =
      ChooseModel(*connection.client, line, "text-classification", console, &model);
  if (chosen != kAllWell) return chosen;
  return RunOverInputs(line, console, [&](const std::string& text) {
    v1::ClassifyRequest request;
    request.set_model(model.name());
    request.set_text(text);
    request.set_truncate(line.truncate);
    request.set_return_logits(line.logits);
    request.set_top_k(line.top_k.value_or(line.json ? 0 : 1));
    v1::ClassifyResponse response;
    Outcome outcome;
    outcome.status = connection.client->Classify(request, &response);
    outcome.json = ToJson(response);
    outcome.text = LabelsOf(response);
    return outcome;
  });
}

}  // namespace longview::client
