#include "models/luna_decoder/weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/luna/weight_forms.h"
#include "models/parallel.h"
#include "models/status_macros.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

class Loader {
 public:
  Loader(const LunaDecoderConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<WeightFormat> format, DeviceStore* store)
      : config_(config), load_(checkpoint, origin, format), place_(load_, store), origin_(origin) {}

  absl::StatusOr<LunaDecoderWeights> Load() {
    for (const char* buffer : {"*._float_tensor", "decoder.version",
                               "decoder.embed_positions.weights", "decoder.proj_layer_norm.*"}) {
      load_.source().Ignore(buffer);
    }
    if (config_.encoder) load_.source().Ignore("encoder.*");
    Embeddings();
    for (int i = 0; i < config_.layers && load_.ok(); ++i) {
      Layer(absl::StrCat("decoder.layers.", i, "."));
    }
    if (config_.norms == NormPlace::kPre) weights_.final_norm = LayerNorm("decoder.layer_norm");
    RETURN_IF_ERROR(load_.Finish());
    weights_.parameters = load_.parameters();
    weights_.memory_bytes = load_.memory_bytes();
    return std::move(weights_);
  }

 private:
  NormWeight LayerNorm(const std::string& name) {
    Norm norm = load_.LayerNorm(name, config_.width, config_.norm_eps);
    ApplyNormGain(config_.gain, norm);
    return place_.Norm(std::move(norm), config_.width);
  }

  void Embeddings() {
    const int64_t width = config_.width, rows = config_.position_rows();
    const std::vector<int64_t> table = {config_.vocab, width};
    std::vector<std::string> names = {"decoder.embed_tokens.weight",
                                      "decoder.output_projection.weight"};
    if (config_.shared_words) names.push_back("encoder.embed_tokens.weight");
    words_ = config_.tied_words ? load_.GetTied(names, table) : load_.Get(names[0], table);
    weights_.words = place_.Stored(words_, config_.vocab, width);
    weights_.logits =
        place_.Pack(names[1], OutputMatrix(names[1]),
                    std::vector<float>(static_cast<size_t>(config_.vocab)), config_.vocab, width);
    if (config_.positions == LunaPositions::kLearned) {
      weights_.positions =
          place_.Stored(load_.Get("decoder.embed_positions.weight", {rows, width}), rows, width);
    } else if (config_.positions == LunaPositions::kSinusoidal) {
      std::vector<float> sinusoids;
      if (load_.reads()) sinusoids = Sinusoids(rows, width);
      load_.CountBytes(4.0 * static_cast<double>(sinusoids.size()));
      weights_.positions = place_.Values(std::move(sinusoids), rows, width);
    }
    if (config_.embedding_norm) weights_.embedding_norm = LayerNorm("decoder.layernorm_embedding");
  }

  // [V, d]. fairseq projects to decoder_output_dim first, with nothing between the two linears.
  std::vector<float> OutputMatrix(const std::string& name) {
    if (config_.tied_words) return load_.Copy(words_);
    const int64_t width = config_.width, inner = config_.output_width;
    const std::vector<float> out = load_.Copy(load_.Get(name, {config_.vocab, inner}));
    if (inner == width) return out;
    const std::vector<float> project =
        load_.Copy(load_.Get("decoder.project_out_dim.weight", {inner, width}));
    if (!load_.ok() || !load_.reads()) return {};
    std::vector<float> transposed(project.size());
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t j = 0; j < width; ++j) transposed[j * inner + i] = project[i * width + j];
    }
    std::vector<float> product(static_cast<size_t>(config_.vocab * width));
    const absl::Status status = GuardTorch(origin_, [&] {
      PanelRules rules;
      absl::StatusOr<Linear> linear =
          Linear::Pack(name, transposed, width, inner, Compute::kFp32, rules);
      if (!linear.ok()) return load_.Fail(linear.status());
      const DenseLayer through = {*std::move(linear),
                                  std::vector<float>(static_cast<size_t>(width))};
      std::vector<const float*> rows;
      for (int row = 0; row < config_.vocab; ++row) rows.push_back(out.data() + row * inner);
      ApplyToRows(through, rows, Activation::kNone, TorchParallelFor(), product.data());
    });
    if (!status.ok()) load_.Fail(status);
    return product;
  }

  // The rows P of a layer through pq_proj, once for all texts.
  Table PackedRows(const std::string& self, const TensorView* stored) {
    const int64_t width = config_.width;
    const std::optional<DenseLayer> query = load_.Dense(self + "pq_proj", width, width);
    const std::vector<float> rows = load_.Copy(stored);
    const int64_t floats =
        kernels::OuterPackedFloats(config_.heads, config_.head_dim(), config_.projected);
    std::vector<float> packed;
    if (query && load_.ok() && load_.reads()) {
      std::vector<const float*> pointers;
      for (int row = 0; row < config_.projected; ++row) {
        pointers.push_back(rows.data() + row * width);
      }
      std::vector<float> projected(rows.size());
      packed.resize(static_cast<size_t>(floats));
      const absl::Status status = GuardTorch(origin_, [&] {
        ApplyToRows(*query, pointers, Activation::kNone, TorchParallelFor(), projected.data());
      });
      if (!status.ok()) load_.Fail(status);
      kernels::PackOuterRows(projected.data(), config_.heads, config_.head_dim(), config_.projected,
                             packed.data());
      load_.CountBytes(4.0 * static_cast<double>(floats));
    }
    return place_.Values(std::move(packed), width, floats / width);
  }

  void Layer(const std::string& layer) {
    const int64_t d = config_.width;
    const std::string self = layer + "self_attn.";
    const std::string write = config_.legacy_roles ? "c_proj" : "pc_proj";
    const std::string both = config_.legacy_roles ? "pc_proj" : "c_proj";
    std::vector<WeightLoader::Part> parts = {{"q_proj", d}, {write, d}};
    if (config_.tied_kv) {
      parts.push_back({both, d});
    } else {
      parts.push_back({"k_proj", d});
      parts.push_back({"v_proj", d});
    }
    LunaDecoderLayer& to = weights_.layers.emplace_back();
    to.project = place_.Stack(self, parts, d);
    if (config_.encoder) {
      Cross(layer, to.cross.emplace());
    } else {
      to.packed =
          PackedRows(self, load_.Get(layer + "projected_embeddings", {config_.projected, d}));
    }
    to.out = place_.Linear(self + "out_proj", d, d);
    to.attention_norm = LayerNorm(layer + "self_attn_layer_norm");
    to.expand = place_.Linear(layer + "fc1", config_.intermediate, d);
    to.contract = place_.Linear(layer + "fc2", d, config_.intermediate);
    to.output_norm = LayerNorm(layer + "final_layer_norm");
  }

  void Cross(const std::string& layer, LunaCross& to) {
    const int64_t d = config_.width;
    const std::string across = layer + "encoder_attn.";
    const std::string pack = config_.legacy_roles ? "c_proj" : "pc_proj";
    const std::string unpack = config_.legacy_roles ? "pc_proj" : "c_proj";
    using Parts = std::vector<WeightLoader::Part>;
    const bool tied = config_.tied_kv;
    to.rows = place_.Linear(layer + "self_attn.pq_proj", d, d);
    to.pack_query = place_.Linear(across + "pq_proj", d, d);
    to.pack =
        place_.Stack(across, tied ? Parts{{pack, d}} : Parts{{"pk_proj", d}, {"pv_proj", d}}, d);
    to.unpack =
        place_.Stack(across, tied ? Parts{{unpack, d}} : Parts{{"k_proj", d}, {"v_proj", d}}, d);
    to.query = place_.Linear(across + "q_proj", d, d);
    to.out = place_.Linear(across + "out_proj", d, d);
    to.norm = LayerNorm(layer + "encoder_attn_layer_norm");
    to.projected_norm = LayerNorm(layer + "encoder_atten_proj_layer_norm");
  }

  const LunaDecoderConfig& config_;
  WeightLoader load_;
  WeightPlacer place_;
  const std::string origin_;
  const TensorView* words_ = nullptr;
  LunaDecoderWeights weights_;
};

}  // namespace

absl::StatusOr<LunaDecoderWeights> LoadLunaDecoderWeights(const LunaDecoderConfig& config,
                                                          const Checkpoint& checkpoint,
                                                          const std::string& origin,
                                                          std::optional<WeightFormat> format,
                                                          DeviceStore* store) {
  return Loader(config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
