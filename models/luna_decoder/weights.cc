#include "models/luna_decoder/weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/kept_table.h"
#include "models/layers/sinusoids.h"
#include "models/luna/norm_gain.h"
#include "models/parallel.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

class Loader {
 public:
  Loader(const LunaDecoderConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<Compute> compute)
      : config_(config), load_(checkpoint, origin, compute), origin_(origin) {}

  absl::StatusOr<LunaDecoderWeights> Load() {
    for (const char* buffer : {"*._float_tensor", "decoder.version",
                               "decoder.embed_positions.weights", "decoder.proj_layer_norm.*"}) {
      load_.source().Ignore(buffer);
    }
    if (config_.encoder) load_.source().Ignore("encoder.*");
    weights_.sizes = {true, true, true};
    Embeddings();
    for (int i = 0; i < config_.layers && load_.ok(); ++i) {
      Layer(absl::StrCat("decoder.layers.", i, "."));
    }
    if (config_.norms == NormPlace::kPre) weights_.final_norm = LayerNorm("decoder.layer_norm");
    if (absl::Status status = load_.Finish(); !status.ok()) return status;
    weights_.parameters = load_.parameters();
    weights_.memory_bytes = load_.memory_bytes();
    return std::move(weights_);
  }

 private:
  Norm LayerNorm(const std::string& name) {
    Norm norm = load_.LayerNorm(name, config_.width, config_.norm_eps);
    ApplyNormGain(config_.gain, norm);
    return norm;
  }

  void Embeddings() {
    const int64_t width = config_.width, rows = config_.position_rows();
    const std::vector<int64_t> table = {config_.vocab, width};
    std::vector<std::string> names = {"decoder.embed_tokens.weight",
                                      "decoder.output_projection.weight"};
    if (config_.shared_words) names.push_back("encoder.embed_tokens.weight");
    weights_.words = config_.tied_words ? load_.GetTied(names, table) : load_.Get(names[0], table);
    KeepTable(weights_.words, load_);
    weights_.logits =
        load_.Pack(names[1], OutputMatrix(names[1]),
                   std::vector<float>(static_cast<size_t>(config_.vocab)), config_.vocab, width);
    if (config_.positions == LunaPositions::kLearned) {
      weights_.positions = load_.Table("decoder.embed_positions.weight", {rows, width});
    } else if (config_.positions == LunaPositions::kSinusoidal && load_.reads()) {
      weights_.sinusoids = Sinusoids(rows, width);
      load_.CountBytes(4.0 * static_cast<double>(weights_.sinusoids.size()));
    }
    if (config_.embedding_norm) weights_.embedding_norm = LayerNorm("decoder.layernorm_embedding");
  }

  // [V, d]. fairseq projects to decoder_output_dim first, with nothing between the two linears.
  std::vector<float> OutputMatrix(const std::string& name) {
    if (config_.tied_words) return load_.Copy(weights_.words);
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
  std::vector<float> PackedRows(const DenseLayer& query, const std::vector<float>& rows) {
    const int64_t width = config_.width;
    std::vector<const float*> pointers;
    for (int row = 0; row < config_.projected; ++row) pointers.push_back(rows.data() + row * width);
    std::vector<float> projected(rows.size());
    std::vector<float> packed(static_cast<size_t>(
        kernels::OuterPackedFloats(config_.heads, config_.head_dim(), config_.projected)));
    const absl::Status status = GuardTorch(origin_, [&] {
      ApplyToRows(query, pointers, Activation::kNone, TorchParallelFor(), projected.data());
    });
    if (!status.ok()) load_.Fail(status);
    kernels::PackOuterRows(projected.data(), config_.heads, config_.head_dim(), config_.projected,
                           packed.data());
    load_.CountBytes(4.0 * static_cast<double>(packed.size()));
    return packed;
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
    auto project = load_.Stack(self, parts, d);
    auto query = load_.Dense(self + "pq_proj", d, d);
    std::vector<float> rows;
    std::optional<LunaCross> cross;
    if (config_.encoder) {
      cross = Cross(layer, std::move(query));
    } else {
      rows = load_.Copy(load_.Get(layer + "projected_embeddings", {config_.projected, d}));
    }
    auto out = load_.Dense(self + "out_proj", d, d);
    Norm attention_norm = LayerNorm(layer + "self_attn_layer_norm");
    auto expand = load_.Dense(layer + "fc1", config_.intermediate, d);
    auto contract = load_.Dense(layer + "fc2", d, config_.intermediate);
    Norm output_norm = LayerNorm(layer + "final_layer_norm");
    if (!load_.ok() || !load_.reads()) return;
    for (const auto* dense : {&project, &out, &expand, &contract}) {
      NarrowSizes(**dense, weights_.sizes);
    }
    weights_.layers.push_back({*std::move(project), *std::move(out), std::move(attention_norm),
                               *std::move(expand), *std::move(contract), std::move(output_norm),
                               cross ? std::vector<float>() : PackedRows(*query, rows),
                               std::move(cross)});
  }

  // `rows` is the layer's self_attn.pq_proj.
  std::optional<LunaCross> Cross(const std::string& layer, std::optional<DenseLayer> rows) {
    const int64_t d = config_.width;
    const std::string across = layer + "encoder_attn.";
    const std::string pack = config_.legacy_roles ? "c_proj" : "pc_proj";
    const std::string unpack = config_.legacy_roles ? "pc_proj" : "c_proj";
    using Parts = std::vector<WeightLoader::Part>;
    const bool tied = config_.tied_kv;
    auto pack_query = load_.Dense(across + "pq_proj", d, d);
    auto packs =
        load_.Stack(across, tied ? Parts{{pack, d}} : Parts{{"pk_proj", d}, {"pv_proj", d}}, d);
    auto unpacks =
        load_.Stack(across, tied ? Parts{{unpack, d}} : Parts{{"k_proj", d}, {"v_proj", d}}, d);
    auto query = load_.Dense(across + "q_proj", d, d);
    auto out = load_.Dense(across + "out_proj", d, d);
    Norm norm = LayerNorm(layer + "encoder_attn_layer_norm");
    Norm projected_norm = LayerNorm(layer + "encoder_atten_proj_layer_norm");
    if (!load_.ok() || !load_.reads()) return std::nullopt;
    for (const auto* dense : {&rows, &pack_query, &packs, &unpacks, &query, &out}) {
      NarrowSizes(**dense, weights_.sizes);
    }
    return LunaCross{*std::move(rows),    *std::move(pack_query),   *std::move(packs),
                     *std::move(unpacks), *std::move(query),        *std::move(out),
                     std::move(norm),     std::move(projected_norm)};
  }

  const LunaDecoderConfig& config_;
  WeightLoader load_;
  const std::string origin_;
  LunaDecoderWeights weights_;
};

}  // namespace

absl::StatusOr<LunaDecoderWeights> LoadLunaDecoderWeights(const LunaDecoderConfig& config,
                                                          const Checkpoint& checkpoint,
                                                          const std::string& origin,
                                                          std::optional<Compute> compute) {
  return Loader(config, checkpoint, origin, compute).Load();
}

}  // namespace longview::models
