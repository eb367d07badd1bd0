// A JSON object of generation options, a NUL byte and a prompt: the options are refused by name, or
// generating over the toy decoder keeps their limits.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/generation/model/generator_model.h"
#include "models/text/utf8.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/fuzz.h"
#include "tests/support/toy_decoder.h"

namespace longview::models {
namespace {

std::unique_ptr<Model> MakeModel() {
  GeneratorParts parts;
  parts.info.architecture = "ToyForCausalLM";
  parts.decoder = std::make_unique<testing::ToyDecoder>(testing::ToyOptions{.max_tokens = 96});
  parts.codec = std::make_unique<testing::ToyCodec>();
  parts.traits.eos = {testing::kToyEnd};
  return *MakeGeneratorModel(std::move(parts));
}

void CheckSequence(const Piece& whole, const std::string& streamed, const Request& request) {
  FUZZ_PROMISE(whole.finish_reason == "stop" || whole.finish_reason == "length");
  FUZZ_PROMISE(whole.text == streamed);
  FUZZ_PROMISE(ReplaceInvalidUtf8(whole.text) == whole.text);
  const GenerationOptions& options = *request.generation;
  if (options.max_new_tokens) {
    FUZZ_PROMISE(static_cast<int>(whole.token_ids.size()) <= *options.max_new_tokens);
  }
  for (const std::string& stop : options.stop) {
    // One with invalid bytes matches bytes that text does not show.
    if (ReplaceInvalidUtf8(stop) == stop && stop.find("\xef\xbf\xbd") == stop.npos) {
      FUZZ_PROMISE(whole.text.find(stop) == whole.text.npos);
    }
  }
}

void Generate(Model& model, const Request& request) {
  const auto item = model.Prepare(request);
  if (!item.ok()) {
    FUZZ_PROMISE(!item.status().message().empty());
    return;
  }
  FUZZ_PROMISE((*item)->cost().state_bytes > 0 && (*item)->cost().seconds > 0);
  const std::unique_ptr<Generation> generation = *model.Start(**item);
  std::vector<std::string> streamed;
  while (!generation->done()) {
    const StepGrant grant = {generation.get(), generation->need().prefill};
    const std::unique_ptr<Run> run = model.BeginStep({&grant, 1});
    while (run->Advance()) {
    }
    for (const Piece& piece : generation->TakePieces()) {
      if (piece.echo) continue;
      streamed.resize(std::max(streamed.size(), static_cast<size_t>(piece.index) + 1));
      streamed[static_cast<size_t>(piece.index)] += piece.text;
    }
  }
  const absl::StatusOr<Answer> answer = generation->Take();
  if (!answer.ok()) {
    // Only options that ban everything end a generation.
    FUZZ_PROMISE(answer.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  streamed.resize(std::max(streamed.size(), answer->sequences.size()));
  for (size_t i = 0; i < answer->sequences.size(); ++i) {
    CheckSequence(answer->sequences[i], streamed[i], request);
  }
}

}  // namespace
}  // namespace longview::models

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  static const std::unique_ptr<models::Model> model = models::MakeModel();
  const auto [file, prompt] = fuzz::SplitAtNul(fuzz::AsText(data, size));
  const auto object = nlohmann::json::parse(file, nullptr, false);
  models::Request request;
  request.task = models::Task::kTextGeneration;
  request.text = std::string(prompt);
  models::GenerationOptions& options = request.generation.emplace();
  options.seed = 1;
  if (object.is_object()) {
    for (const auto& [name, value] : object.items()) {
      const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      const absl::Status status = models::SetOption(options, name, text);
      if (!status.ok()) FUZZ_PROMISE(!status.message().empty());
    }
  }
  models::Generate(*model, request);
  return 0;
}
