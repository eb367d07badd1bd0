#include "models/longformer_lm/weights.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/kept_table.h"
#include "models/layers/weight_loader.h"

namespace longview::models {
namespace {

// The layout of a checkpoint, as HuggingFace's LongformerForMaskedLM stores it.
class Loader {
 public:
  Loader(const LongformerConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<Compute> compute)
      : config_(config), load_(checkpoint, origin, compute), width_(config.width) {}

  absl::StatusOr<LongformerLmWeights> Load();

 private:
  Norm LayerNorm(const std::string& name) {
    return load_.LayerNorm(name, width_, config_.norm_eps);
  }
  void Embeddings();
  void Layer(int index);
  void Head();

  const LongformerConfig& config_;
  WeightLoader load_;
  const int64_t width_;
  const std::string prefix_ = "longformer.";
  StackWeights stack_;
};

void Loader::Embeddings() {
  const std::string embeddings = prefix_ + "embeddings.";
  const std::string words = embeddings + "word_embeddings.weight";
  if (config_.tied) {
    const std::array<std::string, 2> names = {words, "lm_head.decoder.weight"};
    stack_.words = load_.GetTied(names, {config_.vocab, width_});
  } else {
    stack_.words = load_.Get(words, {config_.vocab, width_});
  }
  KeepTable(stack_.words, load_);
  stack_.positions =
      load_.Table(embeddings + "position_embeddings.weight", {config_.positions, width_});
  stack_.type =
      load_.Copy(load_.Get(embeddings + "token_type_embeddings.weight", {config_.types, width_}));
  stack_.embedding_norm = LayerNorm(embeddings + "LayerNorm");
}

void Loader::Layer(int index) {
  const std::string layer = absl::StrCat(prefix_, "encoder.layer.", index, ".");
  const std::string self = layer + "attention.self.";
  auto qkv = load_.Stack(self, {{"query", width_}, {"key", width_}, {"value", width_}}, width_);
  auto out = load_.Dense(layer + "attention.output.dense", width_, width_);
  Norm attention_norm = LayerNorm(layer + "attention.output.LayerNorm");
  auto expand = load_.Dense(layer + "intermediate.dense", config_.intermediate, width_);
  auto contract = load_.Dense(layer + "output.dense", width_, config_.intermediate);
  Norm output_norm = LayerNorm(layer + "output.LayerNorm");
  if (!load_.ok() || !load_.reads()) return;
  for (const auto* dense : {&qkv, &out, &expand, &contract}) NarrowSizes(**dense, stack_.sizes);
  stack_.layers.push_back({*std::move(qkv), *std::move(out), std::move(attention_norm),
                           std::nullopt, *std::move(expand), *std::move(contract),
                           std::move(output_norm)});
}

void Loader::Head() {
  const int64_t vocab = config_.vocab;
  stack_.head_dense = load_.Dense("lm_head.dense", width_, width_);
  stack_.head_norm = LayerNorm("lm_head.layer_norm");
  const TensorView* decoder = stack_.words;
  std::vector<float> bias;
  if (config_.tied) {
    const std::array<std::string, 2> names = {"lm_head.bias", "lm_head.decoder.bias"};
    bias = load_.Copy(load_.GetTied(names, {vocab}));
  } else {
    decoder = load_.Get("lm_head.decoder.weight", {vocab, width_});
    bias = load_.Copy(load_.Get("lm_head.decoder.bias", {vocab}));
    load_.source().Ignore("lm_head.bias");
  }
  if (!load_.ok() || !load_.reads()) return;
  stack_.logits =
      load_.Pack("lm_head.decoder", load_.Copy(decoder), std::move(bias), vocab, width_);
}

absl::StatusOr<LongformerLmWeights> Loader::Load() {
  for (const char* pattern : {"*position_ids", "*.query_global.*", "*.key_global.*",
                              "*.value_global.*", "longformer.pooler.*"}) {
    load_.source().Ignore(pattern);
  }
  load_.set_packs_rows(true);
  Embeddings();
  for (int i = 0; i < config_.layers && load_.ok(); ++i) Layer(i);
  if (load_.ok()) Head();
  if (absl::Status status = load_.Finish(); !status.ok()) return status;
  return LongformerLmWeights{std::move(stack_), load_.parameters(), load_.memory_bytes()};
}

}  // namespace

StackConfig LongformerStack(const LongformerConfig& config) {
  StackConfig stack;
  stack.family = "longformer_lm";
  stack.vocab = config.vocab;
  stack.width = config.width;
  stack.heads = config.heads;
  stack.intermediate = config.intermediate;
  stack.first_position = config.pad + 1;
  stack.activation = config.activation;
  for (int layer = 0; layer < config.layers; ++layer) {
    const auto i = static_cast<size_t>(layer);
    stack.windows.push_back({config.window[i], config.dilation[i]});
  }
  return stack;
}

absl::StatusOr<LongformerLmWeights> LoadLongformerLmWeights(const LongformerConfig& config,
                                                            const Checkpoint& checkpoint,
                                                            const std::string& origin,
                                                            std::optional<Compute> compute) {
  return Loader(config, checkpoint, origin, compute).Load();
}

}  // namespace longview::models
