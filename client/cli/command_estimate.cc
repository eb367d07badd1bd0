#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/json_lines.h"
#include "client/cli/over_inputs.h"
#include "client/cli/terminal.h"

namespace longview::client {
namespace {

Outcome EstimateOne(const Client& client, const v1::EstimateRequest& request) {
  v1::EstimateResponse response;
  Outcome outcome;
  outcome.status = client.Estimate(request, &response);
  outcome.json = ToJson(response);
  std::string state;  // Generators hold some.
  if (response.state_bytes() > 0) {
    state = absl::StrFormat("\tstate %.1f MB", response.state_bytes() / 1e6);
  }
  const v1::Usage& usage = response.usage();
  const std::string length = usage.width() > 0
                                 ? absl::StrFormat("%d x %d pixels", usage.width(), usage.height())
                                 : absl::StrFormat("%d tokens", usage.input_tokens());
  outcome.text = absl::StrFormat(
      "%s\t%.4f s\tqueue %.4f s\t%.3g GMAC\tworkspace %.1f MB%s%s", length, response.seconds(),
      response.queue_seconds(), response.multiply_adds() / 1e9, response.workspace_bytes() / 1e6,
      state, response.fits() ? "" : "\tdoes not fit: " + response.reason());
  return outcome;
}

}  // namespace

ExitCode RunEstimate(const CommandLine& line, Console& console) {
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::Model model;
  const ExitCode chosen = ChooseModel(*connection.client, line, "", console, &model);
  if (chosen != kAllWell) return chosen;
  v1::EstimateRequest request;
  request.set_model(model.name());
  request.set_max_tokens(line.max_tokens.value_or(0));
  request.set_n(line.n.value_or(0));
  if (!line.tokens && !line.width) {
    return RunOverInputs(line, console, [&](const std::string& text) {
      v1::EstimateRequest with_text = request;
      with_text.set_text(text);
      return EstimateOne(*connection.client, with_text);
    });
  }
  request.set_num_tokens(line.tokens.value_or(0));
  request.set_width(line.width.value_or(0));
  request.set_height(line.height.value_or(0));
  const Outcome outcome = EstimateOne(*connection.client, request);
  if (!outcome.status.ok()) {
    Error(console) << CodeName(outcome.status.error_code()) << ": "
                   << outcome.status.error_message() << "\n";
    return kSomeInputFailed;
  }
  console.out << (line.json ? outcome.json : outcome.text) << "\n";
  return kAllWell;
}

}  // namespace longview::client
