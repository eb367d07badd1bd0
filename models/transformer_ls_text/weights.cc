#include "models/transformer_ls_text/weights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/ops/family_loader.h"

namespace longview::models {
namespace {

class Loader : public FamilyLoader<LsTextConfig, LsTextWeights> {
 public:
  using FamilyLoader::FamilyLoader;

  absl::StatusOr<LsTextWeights> Load() {
    Embeddings();
    const int stored = config_.tied ? 1 : config_.layers;
    for (int i = 0; i < stored && load_.ok(); ++i) {
      Layer(config_.tied ? "model.transformer." : absl::StrCat("model.transformer_", i, "."));
    }
    weights_.norm = LayerNorm("model.norm");
    Head();
    return Finish();
  }

 private:
  void Embeddings() {
    const int64_t width = config_.width;
    const auto table = [&](const std::string& name, int64_t rows) {
      return place_.Stored(load_.Get("model.embeddings." + name + ".weight", {rows, width}), rows,
                           width);
    };
    weights_.words = table("word_embeddings", config_.vocab);
    weights_.positions = table("position_embeddings", config_.positions);
    const bool learned = config_.cls == LsClass::kLastLayer || config_.cls == LsClass::kAllLayers;
    if (!learned) return;
    const TensorView* stored = load_.Get("model.cls_embed", {1, 1, width});
    weights_.class_vector = place_.Values(load_.Copy(stored), 1, width);
  }

  void Layer(const std::string& prefix) {
    const int64_t width = config_.width;
    const std::string self = prefix + "mha.";
    LsTextLayer& layer = weights_.layers.emplace_back();
    layer.attention_norm = LayerNorm(prefix + "norm1");
    layer.project = place_.Stack(
        self, {{"W_q", width}, {"W_k", width}, {"W_v", width}, {"dconv_fc", config_.columns()}},
        width);
    layer.token_norm = LayerNorm(self + "dual_ln_l");
    layer.landmark_norm = LayerNorm(self + "dual_ln_s");
    layer.out = place_.Linear(self + "W_o", width, width);
    layer.mlp_norm = LayerNorm(prefix + "norm2");
    layer.expand = place_.Linear(prefix + "mlpblock.0", config_.intermediate, width);
    layer.contract = place_.Linear(prefix + "mlpblock.3", width, config_.intermediate);
  }

  // "seq_classifer" is how the published code spells it.
  void Head() {
    const int64_t features =
        (config_.head == EncoderHead::kPairClassification ? 4 : 1) * int64_t{config_.width};
    weights_.head_hidden = load_.Dense("seq_classifer.mlpblock.0", config_.intermediate, features);
    weights_.head_out =
        load_.Dense("seq_classifer.mlpblock.2", static_cast<int64_t>(config_.labels.size()),
                    config_.intermediate);
  }
};

}  // namespace

absl::StatusOr<LsTextWeights> LoadLsTextWeights(const LsTextConfig& config,
                                                const Checkpoint& checkpoint,
                                                const std::string& origin,
                                                std::optional<WeightFormat> format,
                                                DeviceStore* store) {
  return Loader(config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
