#include <memory>
#include <string>
#include <utility>

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

Outcome OutcomeOf(grpc::Status status, const v1::ClassifyResponse& response) {
  Outcome outcome{std::move(status), ToJson(response), LabelsOf(response)};
  outcome.Count(response.usage());
  return outcome;
}

Outcome ClassifyImage(const Client& client, const CommandLine& line, const std::string& model,
                      const std::string& image) {
  v1::ClassifyImageRequest request;
  request.set_model(model);
  request.set_image(image);
  request.set_return_logits(line.logits);
  request.set_top_k(line.top_k.value_or(line.json ? 0 : 1));
  v1::ClassifyResponse response;
  grpc::Status status = client.ClassifyImage(request, &response);
  return OutcomeOf(std::move(status), response);
}

}  // namespace

ExitCode RunClassify(const CommandLine& line, Console& console) {
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::Model model;
  const std::string task = line.image ? "image-classification" : "text-classification";
  const ExitCode chosen = ChooseModel(*connection.client, line, task, console, &model);
  if (chosen != kAllWell) return chosen;
  return RunOverInputs(line, console, [&](const std::string& text) {
    if (line.image) return ClassifyImage(*connection.client, line, model.name(), text);
    v1::ClassifyRequest request;
    request.set_model(model.name());
    request.set_text(text);
    if (line.truncate) request.set_truncate(true);
    request.set_return_logits(line.logits);
    request.set_top_k(line.top_k.value_or(line.json ? 0 : 1));
    v1::ClassifyResponse response;
    grpc::Status status = connection.client->Classify(request, &response);
    return OutcomeOf(std::move(status), response);
  });
}

}  // namespace longview::client
