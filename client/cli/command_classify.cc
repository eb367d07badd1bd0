#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/inputs.h"
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

Outcome ClassifyText(const Client& client, const CommandLine& line, const std::string& model,
                     const std::string& text) {
  v1::ClassifyRequest request;
  request.set_model(model);
  request.set_text(text);
  if (line.truncate) request.set_truncate(true);
  request.set_return_logits(line.logits);
  request.set_top_k(line.top_k.value_or(line.json ? 0 : 1));
  v1::ClassifyResponse response;
  grpc::Status status = client.Classify(request, &response);
  return OutcomeOf(std::move(status), response);
}

// The kinds of the inputs. `piped` is the content of standard input, if one of them reads it.
struct Kinds {
  bool texts = false;
  bool pictures = false;
};

Kinds KindsOf(const CommandLine& line, const std::string& piped) {
  if (line.image) return {.pictures = true};
  Kinds kinds;
  for (const Input& input : ListInputs(line.inputs)) {
    const bool picture =
        input.status.ok() &&
        !(input.path == "-" ? PictureFormat(piped) : PictureFormatOfFile(input.path)).empty();
    (picture ? kinds.pictures : kinds.texts) = true;
  }
  if (!kinds.pictures) kinds.texts = true;  // An empty directory.
  return kinds;
}

// The model for inputs of one kind. Where there are both kinds, --model is of that which it can do.
ExitCode ChooseFor(const std::string& task, bool both, const Client& client,
                   const CommandLine& line, Console& console, std::string* name) {
  v1::Model model;
  ExitCode code = ChooseModel(client, line, task, console, &model);
  if (code == kAllWell && both && !line.model.empty() && model.tasks_size() > 0 &&
      !HasTask(model, task)) {
    CommandLine unnamed = line;
    unnamed.model.clear();
    code = ChooseModel(client, unnamed, task, console, &model);
  }
  *name = model.name();
  return code;
}

// The content of standard input, so that it can be looked at before it is sent: up to the limit of
// an input and a little more, which is then refused as too large.
std::string ReadPiped(const CommandLine& line, Console& console) {
  std::string piped;
  if (std::find(line.inputs.begin(), line.inputs.end(), "-") == line.inputs.end()) return piped;
  char block[64 << 10];
  while (piped.size() <= ReadOptions().max_bytes && console.in) {
    console.in.read(block, sizeof block);
    piped.append(block, static_cast<size_t>(console.in.gcount()));
  }
  return piped;
}

}  // namespace

ExitCode RunClassify(const CommandLine& line, Console& console) {
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  const Client& client = *connection.client;
  std::istringstream piped(ReadPiped(line, console));
  const Kinds kinds = KindsOf(line, piped.str());
  const bool both = kinds.texts && kinds.pictures;
  std::string of_texts, of_pictures;
  if (kinds.texts) {
    const ExitCode code = ChooseFor("text-classification", both, client, line, console, &of_texts);
    if (code != kAllWell) return code;
  }
  if (kinds.pictures) {
    const ExitCode code =
        ChooseFor("image-classification", both, client, line, console, &of_pictures);
    if (code != kAllWell) return code;
  }
  Console replayed{piped,
                   console.out,
                   console.err,
                   console.err_is_terminal,
                   console.out_is_terminal,
                   console.err_colors,
                   console.out_colors};
  return RunOverInputs(line, replayed, [&](const std::string& content) {
    const bool picture = line.image || !PictureFormat(content).empty();
    return picture ? ClassifyImage(client, line, of_pictures, content)
                   : ClassifyText(client, line, of_texts, content);
  });
}

}  // namespace longview::client
