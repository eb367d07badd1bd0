#include "tests/models/generation/generator_driver.h"

#include <algorithm>

namespace longview::models {

ToyModel MakeToyModel(const testing::ToyOptions& options, GeneratorTraits traits, bool with_text) {
  GeneratorParts parts;
  parts.info.family = "toy";
  parts.info.architecture = "ToyForCausalLM";
  auto decoder = std::make_unique<testing::ToyDecoder>(options);
  ToyModel toy;
  toy.counts = decoder->counts();
  parts.decoder = std::move(decoder);
  if (with_text) parts.codec = std::make_unique<testing::ToyCodec>();
  parts.traits = std::move(traits);
  if (parts.traits.eos.empty()) parts.traits.eos = {testing::kToyEnd};
  absl::StatusOr<std::unique_ptr<Model>> model = MakeGeneratorModel(std::move(parts));
  EXPECT_TRUE(model.ok()) << model.status();
  toy.model = *std::move(model);
  return toy;
}

Request TextRequest(std::string text, GenerationOptions options) {
  Request request;
  request.task = Task::kTextGeneration;
  request.text = std::move(text);
  request.generation = std::move(options);
  return request;
}

Request IdsRequest(std::vector<int32_t> ids, GenerationOptions options) {
  Request request;
  request.task = Task::kTextGeneration;
  request.tokens.emplace().ids = std::move(ids);
  request.generation = std::move(options);
  return request;
}

GenerationOptions NewTokens(int tokens) {
  GenerationOptions options;
  options.max_new_tokens = tokens;
  return options;
}

Live StartOn(Model& model, const Request& request) {
  Live live;
  absl::StatusOr<std::unique_ptr<Item>> item = model.Prepare(request);
  EXPECT_TRUE(item.ok()) << item.status();
  if (!item.ok()) return live;
  live.item = *std::move(item);
  absl::StatusOr<std::unique_ptr<Generation>> generation = model.Start(*live.item);
  EXPECT_TRUE(generation.ok()) << generation.status();
  if (generation.ok()) live.generation = *std::move(generation);
  return live;
}

void StepOnce(Model& model, const std::vector<Live*>& lives, int prefill) {
  std::vector<StepGrant> grants;
  for (Live* live : lives) {
    const int left = live->generation->need().prefill;
    grants.push_back({live->generation.get(), prefill == 0 ? left : std::min(left, prefill)});
  }
  const std::unique_ptr<Run> run = model.BeginStep(grants);
  while (run->Advance()) {
  }
  for (Live* live : lives) {
    for (Piece& piece : live->generation->TakePieces()) live->pieces.push_back(std::move(piece));
  }
}

absl::StatusOr<Answer> Finish(Model& model, Live& live, int prefill) {
  while (!live.generation->done()) StepOnce(model, {&live}, prefill);
  for (Piece& piece : live.generation->TakePieces()) live.pieces.push_back(std::move(piece));
  absl::StatusOr<Answer> answer = live.generation->Take();
  if (!answer.ok() || answer->prompt) return answer;
  // The prompt came as a piece.
  for (const Piece& piece : live.pieces) {
    if (piece.echo) answer->prompt = piece;
  }
  return answer;
}

Answer Generate(Model& model, const Request& request, int prefill) {
  Live live = StartOn(model, request);
  if (live.generation == nullptr) return {};
  absl::StatusOr<Answer> answer = Finish(model, live, prefill);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *std::move(answer) : Answer();
}

Piece Joined(const std::vector<Piece>& pieces, int index) {
  Piece joined;
  joined.index = index;
  for (const Piece& piece : pieces) {
    if (piece.index != index || piece.echo) continue;
    EXPECT_EQ(joined.finish_reason, "") << "a piece after the last";
    joined.text += piece.text;
    joined.token_ids.insert(joined.token_ids.end(), piece.token_ids.begin(), piece.token_ids.end());
    joined.logprobs.insert(joined.logprobs.end(), piece.logprobs.begin(), piece.logprobs.end());
    joined.finish_reason = piece.finish_reason;
  }
  return joined;
}

std::string Refusal(const Model& model, const Request& request) {
  const absl::StatusOr<std::unique_ptr<Item>> item = model.Prepare(request);
  return item.ok() ? std::string() : std::string(item.status().message());
}

}  // namespace longview::models
