#include "models/modernbert/weights.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/ops/family_loader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

class Loader : public FamilyLoader<TransformerConfig, TransformerWeights> {
 public:
  using FamilyLoader::FamilyLoader;

  absl::StatusOr<TransformerWeights> Load() {
    // The base model is stored without a prefix; in files of a masked LM it has one.
    constexpr std::array<std::string_view, 2> kPrefixes = {"model.", ""};
    ASSIGN_OR_RETURN(const std::string prefix,
                     load_.source().FindPrefix(kPrefixes, "embeddings.tok_embeddings.weight"));
    prefix_ = prefix;
    Embeddings();
    for (size_t i = 0; i < config_.layers.size() && load_.ok(); ++i) {
      Layer(absl::StrCat(prefix_, "layers.", i, "."), i == 0);
    }
    weights_.final_norm = LayerNorm(prefix_ + "final_norm");
    Head();
    return Finish();
  }

 private:
  Norm HostNorm(const std::string& name) {
    return load_.LayerNorm(name, config_.width, config_.norm_eps, config_.norm_bias);
  }
  NormWeight LayerNorm(const std::string& name) {
    return place_.Norm(HostNorm(name), config_.width);
  }

  void Embeddings() {
    const std::vector<int64_t> shape = {config_.vocab, config_.width};
    const std::string words = prefix_ + "embeddings.tok_embeddings.weight";
    if (config_.head == EncoderHead::kMaskedLm && config_.tied) {
      const std::array<std::string, 2> names = {words, "decoder.weight"};
      words_ = load_.GetTied(names, shape);
    } else {
      words_ = load_.Get(words, shape);
    }
    weights_.words = place_.Stored(words_, config_.vocab, config_.width);
    weights_.embedding_norm = LayerNorm(prefix_ + "embeddings.norm");
    for (const RotaryConfig& rotary : config_.rotary) {
      std::vector<float> angles;
      if (load_.reads()) angles = RotaryAngles(rotary, config_.max_tokens, config_.head_dim());
      load_.CountBytes(static_cast<double>(angles.size() * sizeof(float)));
      weights_.angles.push_back(
          place_.Values(std::move(angles), config_.max_tokens, config_.head_dim()));
    }
  }

  void Layer(const std::string& layer, bool first) {
    const int64_t width = config_.width, inner = config_.intermediate;
    TransformerLayer& to = weights_.layers.emplace_back();
    if (!first) to.attention_norm = LayerNorm(layer + "attn_norm");
    to.project = place_.Linear(layer + "attn.Wqkv", 3 * width, width, config_.attention_bias);
    to.out = place_.Linear(layer + "attn.Wo", width, width, config_.attention_bias);
    to.middle_norm = LayerNorm(layer + "mlp_norm");
    std::vector<Weight> halves = place_.Split(layer + "mlp.Wi", 2, inner, width, config_.mlp_bias);
    to.expand = std::move(halves[0]);
    to.gate = std::move(halves[1]);
    to.contract = place_.Linear(layer + "mlp.Wo", width, inner, config_.mlp_bias);
  }

  void Head() {
    const int64_t width = config_.width;
    const bool predicts = config_.head == EncoderHead::kMaskedLm;
    // Left in the file by a head of another task.
    if (!predicts) load_.source().Ignore("decoder.*");
    if (config_.head == EncoderHead::kNone) return load_.source().Ignore("head.*");
    weights_.head_dense = load_.Dense("head.dense", width, width, config_.head_bias);
    weights_.head_norm = HostNorm("head.norm");
    if (predicts) return Decoder();
    int64_t outputs = static_cast<int64_t>(config_.labels.size());
    if (config_.head == EncoderHead::kQuestionAnswering) outputs = 2;
    if (config_.head == EncoderHead::kMultipleChoice) outputs = 1;
    weights_.head_out = load_.Dense("classifier", outputs, width);
  }

  void Decoder() {
    const int64_t width = config_.width, vocab = config_.vocab;
    const TensorView* table = config_.tied ? words_ : load_.Get("decoder.weight", {vocab, width});
    std::vector<float> bias(static_cast<size_t>(vocab));
    if (config_.decoder_bias) bias = load_.Vector("decoder.bias", vocab);
    const std::vector<float> weight = load_.Copy(table);
    weights_.head_out = load_.Pack("decoder", weight, std::move(bias), vocab, width);
  }

  std::string prefix_;
  const TensorView* words_ = nullptr;
};

}  // namespace

absl::StatusOr<TransformerWeights> LoadModernBertWeights(const TransformerConfig& config,
                                                         const Checkpoint& checkpoint,
                                                         const std::string& origin,
                                                         std::optional<WeightFormat> format,
                                                         DeviceStore* store) {
  return Loader(config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
