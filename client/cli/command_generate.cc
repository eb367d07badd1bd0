#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/connection.h"
#include "client/cli/inputs.h"
#include "client/cli/json_lines.h"
#include "client/cli/over_inputs.h"
#include "client/cli/terminal.h"

namespace longview::client {
namespace {

v1::GenerateRequest RequestOf(const CommandLine& line, const std::string& model) {
  v1::GenerateRequest request;
  request.set_model(model);
  if (line.truncate) request.set_truncate(true);
  request.set_document(line.document);
  if (line.max_tokens) request.set_max_tokens(*line.max_tokens);
  if (line.min_new_tokens) request.set_min_new_tokens(*line.min_new_tokens);
  if (line.temperature) request.set_temperature(static_cast<float>(*line.temperature));
  if (line.top_p) request.set_top_p(static_cast<float>(*line.top_p));
  if (line.top_k) request.set_top_k(*line.top_k);
  if (line.repetition_penalty) {
    request.set_repetition_penalty(static_cast<float>(*line.repetition_penalty));
  }
  if (line.seed) request.set_seed(static_cast<uint32_t>(*line.seed));
  for (const std::string& stop : line.stop) request.add_stop(stop);
  if (line.n) request.set_n(*line.n);
  if (line.num_beams) request.set_num_beams(*line.num_beams);
  if (line.length_penalty) request.set_length_penalty(static_cast<float>(*line.length_penalty));
  if (line.no_repeat_ngram_size) request.set_no_repeat_ngram_size(*line.no_repeat_ngram_size);
  if (line.early_stopping) request.set_early_stopping(true);
  if (line.logprobs) request.set_logprobs(*line.logprobs);
  request.set_echo(line.echo);
  return request;
}

// The whole answer of one sample as its message, of several as the list `samples` of theirs.
Outcome Collect(const Client& client, v1::GenerateRequest request) {
  request.set_collect(true);
  std::vector<std::string> messages;
  Outcome outcome;
  outcome.status = client.Generate(request, [&](const v1::GenerateResponse& message) {
    messages.push_back(ToJson(message));
    return true;
  });
  if (messages.size() == 1) {
    outcome.json = messages.front();
    return outcome;
  }
  for (const std::string& message : messages) {
    absl::StrAppend(&outcome.json, outcome.json.empty() ? R"({"samples":[)" : ",", message);
  }
  outcome.json += "]}";
  return outcome;
}

// Prints the samples of one input as people read them: the first one as it comes, the others
// behind it when they are whole.
class Printer {
 public:
  explicit Printer(Console& console) : console_(console) {}

  bool Add(const v1::GenerateResponse& message) {
    if (message.index() > 0) {
      later_[message.index()] += message.text();
      return true;
    }
    console_.out << message.text();
    if (console_.out_is_terminal) console_.out.flush();
    return console_.out.good();  // A reader that has left wants no more.
  }

  void Finish() {
    for (const auto& [index, text] : later_) {
      console_.out << "\n--- sample " << index + 1 << " ---\n" << text;
    }
    console_.out << "\n" << std::flush;
  }

 private:
  Console& console_;
  std::map<int, std::string> later_;
};

bool PrintOne(const Client& client, const Input& input, const CommandLine& line,
              v1::GenerateRequest request, Console& console) {
  const absl::StatusOr<std::string> text =
      ReadInput(input, ReadOptions{.lossy = line.lossy}, console.in);
  if (!text.ok()) {
    Error(console) << input.path << ": "
                   << CodeName(static_cast<grpc::StatusCode>(text.status().code())) << ": "
                   << text.status().message() << "\n";
    return false;
  }
  request.set_text(*text);
  Printer printer(console);
  const grpc::Status status = client.Generate(
      request, [&](const v1::GenerateResponse& message) { return printer.Add(message); });
  if (status.ok()) {
    printer.Finish();
    return true;
  }
  console.out.flush();
  Error(console) << input.path << ": " << CodeName(status.error_code()) << ": "
                 << status.error_message() << "\n";
  return false;
}

}  // namespace

ExitCode RunGenerate(const CommandLine& line, Console& console) {
  Connection connection;
  if (ExitCode code = Connect(line, console, &connection); code != kAllWell) return code;
  v1::Model model;
  const ExitCode chosen = ChooseModel(*connection.client, line, "text-generation", console, &model);
  if (chosen != kAllWell) return chosen;
  const v1::GenerateRequest request = RequestOf(line, model.name());
  if (line.json) {
    return RunOverInputs(line, console, [&](const std::string& text) {
      v1::GenerateRequest with_text = request;
      with_text.set_text(text);
      return Collect(*connection.client, std::move(with_text));
    });
  }
  const std::vector<Input> inputs = ListInputs(line.inputs);
  bool failed = false;
  for (const Input& input : inputs) {
    if (inputs.size() > 1) console.out << "==> " << input.path << " <==\n";
    failed |= !PrintOne(*connection.client, input, line, request, console);
  }
  return failed ? kSomeInputFailed : kAllWell;
}

}  // namespace longview::client
