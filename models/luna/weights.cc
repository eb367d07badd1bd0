#include "models/luna/weights.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/luna/weight_forms.h"
#include "models/ops/family_loader.h"

namespace longview::models {
namespace {

const char* Prefix(LunaHead head) {
  if (head == LunaHead::kNone) return "encoder.";
  return head == LunaHead::kLra ? "encoder.encoder." : "encoder.sentence_encoder.";
}

class Loader : public FamilyLoader<LunaConfig, LunaWeights> {
 public:
  Loader(const LunaConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<WeightFormat> format, DeviceStore* store)
      : FamilyLoader(config, checkpoint, origin, format, store), prefix_(Prefix(config.head)) {}

  absl::StatusOr<LunaWeights> Load() {
    for (const char* buffer : {"*._float_tensor", "*version", "*embed_positions.weights"}) {
      load_.source().Ignore(buffer);
    }
    Embeddings();
    const int stored = config_.tied_layers ? 1 : config_.layers;
    for (int i = 0; i < stored && load_.ok(); ++i) Layer(absl::StrCat(prefix_, "layers.", i, "."));
    if (config_.norms == NormPlace::kPre) {
      weights_.final_norm = LayerNorm(prefix_ + "layer_norm");
      weights_.final_projected_norm = LayerNorm(prefix_ + "proj_layer_norm");
    }
    if (config_.is_lra()) {
      LraHead();
    } else if (config_.head == LunaHead::kNone) {
      load_.source().Ignore("decoder.*");
    } else {
      BertHead();
    }
    return Finish();
  }

 private:
  Norm HostNorm(const std::string& name) {
    Norm norm = load_.LayerNorm(name, config_.width, config_.norm_eps);
    ApplyNormGain(config_.gain, norm);
    return norm;
  }
  NormWeight LayerNorm(const std::string& name) {
    return place_.Norm(HostNorm(name), config_.width);
  }

  void Embeddings() {
    const int64_t width = config_.width, rows = config_.position_rows();
    const std::string words = prefix_ + "embed_tokens.weight";
    if (!config_.is_lra() && config_.tied_words) {
      const std::vector<std::string> names =
          config_.head == LunaHead::kNone
              ? std::vector<std::string>{words, "decoder.embed_tokens.weight",
                                         "decoder.output_projection.weight"}
              : std::vector<std::string>{words, "encoder.lm_head.weight"};
      words_ = load_.GetTied(names, {config_.vocab, width});
    } else {
      words_ = load_.Get(words, {config_.vocab, width});
    }
    weights_.words = place_.Stored(words_, config_.vocab, width);
    if (config_.positions == LunaPositions::kLearned) {
      weights_.positions =
          place_.Stored(load_.Get(prefix_ + "embed_positions.weight", {rows, width}), rows, width);
    } else if (config_.positions == LunaPositions::kSinusoidal) {
      std::vector<float> sinusoids;
      if (load_.reads()) {
        sinusoids = Sinusoids(rows, width);
        // fairseq's sinusoidal table has zeros at the padding position.
        std::fill_n(sinusoids.begin() + config_.pad * width, width, 0.0f);
      }
      weights_.positions = place_.Values(std::move(sinusoids), rows, width);
    }
    projected_ =
        load_.Copy(load_.Get(prefix_ + "projected_embeddings", {config_.projected, width}));
    const std::string stored = prefix_ + "projected_positions";
    if (config_.positions == LunaPositions::kSinusoidal) {
      projected_positions_ = load_.source().Has(stored)
                                 ? load_.Copy(load_.Get(stored, {config_.projected, width}))
                                 : Sinusoids(config_.projected, width);
    } else {
      load_.source().Ignore(stored);
    }
    if (config_.embedding_norm) {
      const bool translates = config_.head == LunaHead::kNone;
      weights_.embedding_norm =
          LayerNorm(prefix_ + (translates ? "layernorm_embedding" : "emb_layer_norm"));
      // The published code's spelling.
      projected_norm_ = HostNorm(
          prefix_ + (translates ? "layernorm_porjected_embedding" : "proj_emb_layer_norm"));
    }
    const bool read = load_.reads() && load_.ok();
    weights_.projected =
        place_.Values(read ? ProjectedRows() : std::vector<float>(), config_.projected, width);
  }

  // P before the first layer is the same for every document.
  std::vector<float> ProjectedRows() const {
    const auto width = static_cast<size_t>(config_.width);
    const std::vector<float> zeros(width);
    const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
    std::vector<float> rows = projected_;
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] *= config_.embed_scale;
      if (!projected_positions_.empty()) rows[i] += projected_positions_[i];
    }
    for (size_t row = 0; config_.embedding_norm && row < rows.size(); row += width) {
      floats.residual_norm(rows.data() + row, nullptr, zeros.data(), projected_norm_.view(),
                           config_.width, nullptr);
    }
    return rows;
  }

  void Layer(const std::string& layer) {
    const int64_t d = config_.width;
    const std::string self = layer + "self_attn.";
    const std::string pack = config_.legacy_roles ? "c_proj" : "pc_proj";
    const std::string unpack = config_.legacy_roles ? "pc_proj" : "c_proj";
    using Parts = std::vector<WeightLoader::Part>;
    const Parts tokens = config_.tied_kv ? Parts{{"q_proj", d}, {pack, d}}
                                         : Parts{{"q_proj", d}, {"pk_proj", d}, {"pv_proj", d}};
    LunaLayer& to = weights_.layers.emplace_back();
    to.project = place_.Stack(self, tokens, d);
    to.pack_query = place_.Linear(self + "pq_proj", d, d);
    to.unpack = place_.Stack(
        self, config_.tied_kv ? Parts{{unpack, d}} : Parts{{"k_proj", d}, {"v_proj", d}}, d);
    to.out = place_.Linear(self + "out_proj", d, d);
    to.attention_norm = LayerNorm(layer + "self_attn_layer_norm");
    to.projected_norm = LayerNorm(layer + "self_atten_proj_layer_norm");
    to.expand = place_.Linear(layer + "fc1", config_.intermediate, d);
    to.contract = place_.Linear(layer + "fc2", d, config_.intermediate);
    to.output_norm = LayerNorm(layer + "final_layer_norm");
  }

  void LraHead() {
    int64_t in = config_.features();
    for (size_t i = 0; i < config_.hidden.size(); ++i) {
      auto layer = load_.Dense(absl::StrCat("classifier.", i), config_.hidden[i], in);
      if (layer) weights_.hidden.push_back(*std::move(layer));
      in = config_.hidden[i];
    }
    const auto labels = static_cast<int64_t>(config_.labels.size());
    const std::string name = "sentence_projection_layer";
    const std::vector<float> weight = load_.Copy(load_.Get(name + ".weight", {labels, in}));
    weights_.head_out =
        load_.Pack(name, weight, std::vector<float>(config_.labels.size()), labels, in);
  }

  void BertHead() {
    const int64_t d = config_.width;
    if (config_.head == LunaHead::kMaskedLm) return MaskedLmHead();
    load_.source().Ignore("encoder.lm_head.*");
    load_.source().Ignore("classification_heads.*");
    const std::string head = absl::StrCat("classification_heads.", config_.head_name, ".");
    // The hidden width is the tensor's own.
    const TensorView* dense = checkpoint_.Find(head + "dense.weight");
    const int64_t inner = dense != nullptr && dense->shape.size() == 2 ? dense->shape[0] : d;
    weights_.head_dense = load_.Dense(head + "dense", inner, d);
    weights_.head_out =
        load_.Dense(head + "out_proj", static_cast<int64_t>(config_.labels.size()), inner);
    if (config_.head == LunaHead::kProjectedMax) {
      weights_.head_in = load_.Dense(head + "in_proj", d, d);
    }
    if (config_.head != LunaHead::kProjectedHead) return;
    weights_.query = load_.Dense(head + "attn.q_proj", d, d);
    weights_.key = load_.Dense(head + "attn.k_proj", d, d);
    weights_.value = load_.Dense(head + "attn.v_proj", d, d);
    weights_.attended = load_.Dense(head + "attn.out_proj", d, d);
    weights_.head_norm = HostNorm(head + "layernorm");
  }

  void MaskedLmHead() {
    const int64_t d = config_.width, vocab = config_.vocab;
    load_.source().Ignore("classification_heads.*");
    weights_.head_dense = load_.Dense("encoder.lm_head.dense", d, d);
    weights_.head_norm = HostNorm("encoder.lm_head.layer_norm");
    std::vector<float> bias = load_.Copy(load_.Get("encoder.lm_head.bias", {vocab}));
    const TensorView* table =
        config_.tied_words ? words_ : load_.Get("encoder.lm_head.weight", {vocab, d});
    const std::vector<float> weight = load_.Copy(table);
    weights_.head_out = load_.Pack("encoder.lm_head", weight, std::move(bias), vocab, d);
  }

  const std::string prefix_;
  const TensorView* words_ = nullptr;
  std::vector<float> projected_, projected_positions_;
  Norm projected_norm_;
};

}  // namespace

absl::StatusOr<LunaWeights> LoadLunaWeights(const LunaConfig& config, const Checkpoint& checkpoint,
                                            const std::string& origin,
                                            std::optional<WeightFormat> format,
                                            DeviceStore* store) {
  return Loader(config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
