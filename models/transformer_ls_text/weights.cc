#include "models/transformer_ls_text/weights.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

class Loader {
 public:
  Loader(const LsTextConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<Compute> compute, LayerSink* sink)
      : config_(config), load_(checkpoint, origin, compute), sink_(sink) {}

  absl::StatusOr<LsTextWeights> Load() {
    weights_.sizes = {true, true, true};
    Embeddings();
    if (sink_ != nullptr) sink_->TakeLinearsOf(load_);
    const int stored = config_.tied ? 1 : config_.layers;
    for (int i = 0; i < stored && load_.ok(); ++i) {
      Layer(config_.tied ? "model.transformer." : absl::StrCat("model.transformer_", i, "."));
    }
    load_.set_taker(nullptr);
    weights_.norm = LayerNorm("model.norm");
    Head();
    if (absl::Status status = load_.Finish(); !status.ok()) return status;
    weights_.parameters = load_.parameters();
    weights_.memory_bytes = load_.memory_bytes();
    return std::move(weights_);
  }

 private:
  Norm LayerNorm(const std::string& name) {
    return load_.LayerNorm(name, config_.width, config_.norm_eps);
  }

  void Embeddings() {
    const int64_t width = config_.width;
    weights_.words = load_.Table("model.embeddings.word_embeddings.weight", {config_.vocab, width});
    weights_.positions =
        load_.Table("model.embeddings.position_embeddings.weight", {config_.positions, width});
    const bool learned = config_.cls == LsClass::kLastLayer || config_.cls == LsClass::kAllLayers;
    if (learned) weights_.class_vector = load_.Copy(load_.Get("model.cls_embed", {1, 1, width}));
  }

  void Layer(const std::string& prefix) {
    const int64_t width = config_.width;
    const std::string self = prefix + "mha.";
    Norm attention_norm = LayerNorm(prefix + "norm1");
    auto project = load_.Stack(
        self, {{"W_q", width}, {"W_k", width}, {"W_v", width}, {"dconv_fc", config_.columns()}},
        width);
    Norm token_norm = LayerNorm(self + "dual_ln_l");
    Norm landmark_norm = LayerNorm(self + "dual_ln_s");
    auto out = load_.Dense(self + "W_o", width, width);
    Norm mlp_norm = LayerNorm(prefix + "norm2");
    auto expand = load_.Dense(prefix + "mlpblock.0", config_.intermediate, width);
    auto contract = load_.Dense(prefix + "mlpblock.3", width, config_.intermediate);
    if (!load_.ok() || !load_.reads()) return;
    if (sink_ != nullptr) {
      const Norm* const norms[] = {&attention_norm, &token_norm, &landmark_norm, &mlp_norm};
      return sink_->Norms(norms);
    }
    for (const auto* dense : {&project, &out, &expand, &contract}) {
      NarrowSizes(**dense, weights_.sizes);
    }
    weights_.layers.push_back({std::move(attention_norm), *std::move(project),
                               std::move(token_norm), std::move(landmark_norm), *std::move(out),
                               std::move(mlp_norm), *std::move(expand), *std::move(contract)});
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

  const LsTextConfig& config_;
  WeightLoader load_;
  LayerSink* const sink_;  // Gets the layers; null: they are packed.
  LsTextWeights weights_;
};

}  // namespace

absl::StatusOr<LsTextWeights> LoadLsTextWeights(const LsTextConfig& config,
                                                const Checkpoint& checkpoint,
                                                const std::string& origin,
                                                std::optional<Compute> compute) {
  return Loader(config, checkpoint, origin, compute, nullptr).Load();
}

absl::StatusOr<LsTextWeights> LoadLsTextHost(const LsTextConfig& config,
                                             const Checkpoint& checkpoint,
                                             const std::string& origin, LayerSink& sink) {
  return Loader(config, checkpoint, origin, Compute::kFp32, &sink).Load();
}

}  // namespace longview::models
