#include "models/led/weights.h"

#include <algorithm>
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

// The layout of a checkpoint, as HuggingFace's LEDForConditionalGeneration stores it.
class Loader {
 public:
  Loader(const LedConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<WeightFormat> format, DeviceStore* store)
      : config_(config),
        checkpoint_(checkpoint),
        load_(checkpoint, origin, format),
        place_(load_, store),
        width_(config.decoder.width) {}

  absl::StatusOr<LedWeights> Load();

 private:
  NormWeight LayerNorm(const std::string& name) {
    return place_.Norm(load_.LayerNorm(name, width_, config_.encoder.norm_eps), width_);
  }
  const TensorView* Words(const std::string& side);
  void Embeddings();
  void EncoderLayer(int index);
  void DecoderLayer(int index);
  void Logits();

  const LedConfig& config_;
  const Checkpoint& checkpoint_;
  WeightLoader load_;
  WeightPlacer place_;
  const int64_t width_;
  std::string prefix_;
  const TensorView* tied_ = nullptr;
  LedWeights weights_;
};

// Untied models have a table per side, older files one for both.
const TensorView* Loader::Words(const std::string& side) {
  if (config_.tied) return tied_;
  const std::string own = prefix_ + side + ".embed_tokens.weight";
  const std::string shared = prefix_ + "shared.weight";
  return load_.Get(load_.source().Has(own) ? own : shared, {config_.decoder.vocab, width_});
}

void Loader::Embeddings() {
  if (config_.tied) {
    const std::array<std::string, 4> names = {
        prefix_ + "shared.weight", prefix_ + "encoder.embed_tokens.weight",
        prefix_ + "decoder.embed_tokens.weight", "lm_head.weight"};
    tied_ = load_.GetTied(names, {config_.decoder.vocab, width_});
  } else {
    load_.source().Ignore(prefix_ + "shared.weight");
  }
  const TensorView* words = Words("encoder");
  const TensorView* decoder_words = Words("decoder");
  weights_.encoder.words = place_.Stored(words, config_.decoder.vocab, width_);
  weights_.decoder.words = decoder_words == words
                               ? weights_.encoder.words
                               : place_.Stored(decoder_words, config_.decoder.vocab, width_);
  weights_.encoder.positions = place_.Stored(
      load_.Get(prefix_ + "encoder.embed_positions.weight", {config_.encoder.positions, width_}),
      config_.encoder.positions, width_);
  weights_.decoder.positions = place_.Stored(
      load_.Get(prefix_ + "decoder.embed_positions.weight", {config_.max_output, width_}),
      config_.max_output, width_);
  weights_.encoder.embedding_norm = LayerNorm(prefix_ + "encoder.layernorm_embedding");
  weights_.decoder.embedding_norm = LayerNorm(prefix_ + "decoder.layernorm_embedding");
}

void Loader::EncoderLayer(int index) {
  const std::string layer = absl::StrCat(prefix_, "encoder.layers.", index, ".");
  const std::string self = layer + "self_attn.longformer_self_attn.";
  const int64_t inner = config_.encoder.intermediate;
  LongformerLayer& to = weights_.encoder.layers.emplace_back();
  to.qkv = place_.Stack(self, {{"query", width_}, {"key", width_}, {"value", width_}}, width_);
  to.out = place_.Linear(layer + "self_attn.output", width_, width_);
  to.attention_norm = LayerNorm(layer + "self_attn_layer_norm");
  to.expand = place_.Linear(layer + "fc1", inner, width_);
  to.contract = place_.Linear(layer + "fc2", width_, inner);
  to.output_norm = LayerNorm(layer + "final_layer_norm");
  to.query_global = place_.Linear(self + "query_global", width_, width_);
  to.key_value_global =
      place_.Stack(self, {{"key_global", width_}, {"value_global", width_}}, width_);
  // The stack has asked for both, names and shapes.
  to.key_global = place_.StoredMatrix(checkpoint_.Find(self + "key_global.weight"), width_, width_);
  to.value_global =
      place_.StoredMatrix(checkpoint_.Find(self + "value_global.weight"), width_, width_);
}

void Loader::DecoderLayer(int index) {
  const std::string layer = absl::StrCat(prefix_, "decoder.layers.", index, ".");
  const std::string self = layer + "self_attn.", cross = layer + "encoder_attn.";
  const int64_t inner = config_.decoder.intermediate;
  StackLayer& to = weights_.decoder.layers.emplace_back();
  to.qkv = place_.Stack(self, {{"q_proj", width_}, {"k_proj", width_}, {"v_proj", width_}}, width_);
  to.out = place_.Linear(self + "out_proj", width_, width_);
  to.attention_norm = LayerNorm(layer + "self_attn_layer_norm");
  StackLayer::Cross& to_document = to.cross.emplace();
  to_document.query = place_.Linear(cross + "q_proj", width_, width_);
  // Documents come in many rows.
  load_.set_packs_rows(false);
  weights_.document.push_back(
      place_.Stack(cross, {{"k_proj", width_}, {"v_proj", width_}}, width_));
  load_.set_packs_rows(true);
  to_document.out = place_.Linear(cross + "out_proj", width_, width_);
  to_document.norm = LayerNorm(layer + "encoder_attn_layer_norm");
  to.expand = place_.Linear(layer + "fc1", inner, width_);
  to.contract = place_.Linear(layer + "fc2", width_, inner);
  to.output_norm = LayerNorm(layer + "final_layer_norm");
}

// A vocabulary that was made larger may have left final_logits_bias shorter; it may be absent too.
void Loader::Logits() {
  const int64_t vocab = config_.decoder.vocab;
  const TensorView* weight = tied_;
  if (!config_.tied) weight = load_.Get("lm_head.weight", {vocab, width_});
  std::vector<float> bias;
  const std::string name = "final_logits_bias";
  if (const TensorView* stored = checkpoint_.Find(name); stored != nullptr) {
    const int64_t size = stored->shape.size() == 2 ? std::min(stored->shape[1], vocab) : vocab;
    bias = load_.Copy(load_.Get(name, {1, size}));
  }
  bias.resize(static_cast<size_t>(vocab));
  if (!load_.ok()) return;
  const std::vector<float> values = load_.reads() ? load_.Copy(weight) : std::vector<float>();
  weights_.decoder.logits = place_.Pack("lm_head", values, std::move(bias), vocab, width_);
}

absl::StatusOr<LedWeights> Loader::Load() {
  constexpr std::array<std::string_view, 2> kPrefixes = {"led.", ""};
  ASSIGN_OR_RETURN(std::string prefix,
                   load_.source().FindPrefix(kPrefixes, "encoder.embed_positions.weight"));
  prefix_ = prefix;
  Embeddings();
  for (int i = 0; i < config_.encoder.layers && load_.ok(); ++i) EncoderLayer(i);
  load_.set_packs_rows(true);
  weights_.decoder.distances = DistanceTables(config_.decoder, place_);
  for (int i = 0; i < config_.decoder.layers() && load_.ok(); ++i) DecoderLayer(i);
  if (load_.ok()) Logits();
  RETURN_IF_ERROR(load_.Finish());
  weights_.parameters = load_.parameters();
  weights_.memory_bytes = load_.memory_bytes();
  return std::move(weights_);
}

}  // namespace

absl::StatusOr<LedWeights> LoadLedWeights(const LedConfig& config, const Checkpoint& checkpoint,
                                          const std::string& origin,
                                          std::optional<WeightFormat> format, DeviceStore* store) {
  return Loader(config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
