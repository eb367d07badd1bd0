#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/json_lines.h"
#include "client/cli/over_inputs.h"

namespace longview::client {

ExitCode RunEmbed(const CommandLine& line, Console& console) {
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::Model model;
  const ExitCode chosen = ChooseModel(*connection.client, line, "embedding", console, &model);
  if (chosen != kAllWell) return chosen;
  return RunOverInputs(line, console, [&](const std::string& text) {
    v1::EmbedRequest request;
    request.set_model(model.name());
    request.set_text(text);
    if (line.truncate) request.set_truncate(true);
    request.set_pooling(line.pooling);
    if (line.normalize) request.set_normalize(*line.normalize);
    v1::EmbedResponse response;
    Outcome outcome;
    outcome.status = connection.client->Embed(request, &response);
    outcome.json = ToJson(response);
    outcome.Count(response.usage());
    for (const float value : response.embedding()) {
      absl::StrAppend(&outcome.text, outcome.text.empty() ? "" : " ", value);
    }
    return outcome;
  });
}

}  // namespace longview::client
