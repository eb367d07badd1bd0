#include "models/longformer_lm/weights.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/layers/weight_loader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// The layout of a checkpoint, as HuggingFace's LongformerForMaskedLM stores it.
class Loader {
 public:
  Loader(const LongformerConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<WeightFormat> format, DeviceStore* store)
      : config_(config),
        load_(checkpoint, origin, format),
        place_(load_, store),
        width_(config.width) {}

  absl::StatusOr<StackWeights> Load();

 private:
  NormWeight LayerNorm(const std::string& name) {
    return place_.Norm(load_.LayerNorm(name, width_, config_.norm_eps), width_);
  }
  void Embeddings();
  void Layer(int index);
  void Head();

  const LongformerConfig& config_;
  WeightLoader load_;
  WeightPlacer place_;
  const int64_t width_;
  const std::string prefix_ = "longformer.";
  const TensorView* words_ = nullptr;
  StackWeights stack_;
};

void Loader::Embeddings() {
  const std::string embeddings = prefix_ + "embeddings.";
  const std::string words = embeddings + "word_embeddings.weight";
  if (config_.tied) {
    const std::array<std::string, 2> names = {words, "lm_head.decoder.weight"};
    words_ = load_.GetTied(names, {config_.vocab, width_});
  } else {
    words_ = load_.Get(words, {config_.vocab, width_});
  }
  stack_.words = place_.Stored(words_, config_.vocab, width_);
  stack_.positions = place_.Stored(
      load_.Get(embeddings + "position_embeddings.weight", {config_.positions, width_}),
      config_.positions, width_);
  // Token type 0 alone is used.
  std::vector<float> types =
      load_.Copy(load_.Get(embeddings + "token_type_embeddings.weight", {config_.types, width_}));
  types.resize(static_cast<size_t>(width_));
  stack_.types = place_.Values(std::move(types), 1, width_);
  stack_.embedding_norm = LayerNorm(embeddings + "LayerNorm");
}

void Loader::Layer(int index) {
  const std::string layer = absl::StrCat(prefix_, "encoder.layer.", index, ".");
  const std::string self = layer + "attention.self.";
  StackLayer& to = stack_.layers.emplace_back();
  to.qkv = place_.Stack(self, {{"query", width_}, {"key", width_}, {"value", width_}}, width_);
  to.out = place_.Linear(layer + "attention.output.dense", width_, width_);
  to.attention_norm = LayerNorm(layer + "attention.output.LayerNorm");
  to.expand = place_.Linear(layer + "intermediate.dense", config_.intermediate, width_);
  to.contract = place_.Linear(layer + "output.dense", width_, config_.intermediate);
  to.output_norm = LayerNorm(layer + "output.LayerNorm");
}

void Loader::Head() {
  const int64_t vocab = config_.vocab;
  stack_.head_dense = place_.Linear("lm_head.dense", width_, width_);
  stack_.head_norm = LayerNorm("lm_head.layer_norm");
  const TensorView* decoder =
      config_.tied ? words_ : load_.Get("lm_head.decoder.weight", {vocab, width_});
  std::vector<float> bias =
      DecoderBias("lm_head.decoder.bias", "lm_head.bias", config_.tied, vocab, load_);
  if (!load_.ok()) return;
  const std::vector<float> values = load_.reads() ? load_.Copy(decoder) : std::vector<float>();
  stack_.logits = place_.Pack("lm_head.decoder", values, std::move(bias), vocab, width_);
}

absl::StatusOr<StackWeights> Loader::Load() {
  for (const char* pattern : {"*position_ids", "*.query_global.*", "*.key_global.*",
                              "*.value_global.*", "longformer.pooler.*"}) {
    load_.source().Ignore(pattern);
  }
  load_.set_packs_rows(true);
  Embeddings();
  stack_.distances = DistanceTables(LongformerStack(config_), place_);
  for (int i = 0; i < config_.layers && load_.ok(); ++i) Layer(i);
  if (load_.ok()) Head();
  RETURN_IF_ERROR(load_.Finish());
  stack_.parameters = load_.parameters();
  stack_.memory_bytes = load_.memory_bytes();
  return std::move(stack_);
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

absl::StatusOr<StackWeights> LoadLongformerLmWeights(const LongformerConfig& config,
                                                     const Checkpoint& checkpoint,
                                                     const std::string& origin,
                                                     std::optional<WeightFormat> format,
                                                     DeviceStore* store) {
  return Loader(config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
