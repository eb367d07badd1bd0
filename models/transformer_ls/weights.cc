#include "models/transformer_ls/weights.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/convert.h"
#include "models/layers/kept_table.h"
#include "models/parallel.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

const std::string kPrefix = "decoder.model.";

// Where the file has none: fairseq's sinusoid, 10000^(-2i / d), in fp32.
std::vector<float> ExactFrequencies(int width) {
  std::vector<float> frequencies;
  for (int i = 0; i < width; i += 2) {
    const float power = static_cast<float>(i) / static_cast<float>(width);
    frequencies.push_back(1.0f / std::pow(10000.0f, power));
  }
  return frequencies;
}

class Loader {
 public:
  Loader(const LsLmConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<Compute> compute, LsLmLayerSink* sink)
      : config_(config), load_(checkpoint, origin, compute), sink_(sink) {
    load_.set_packs_rows(true);
    if (sink_ == nullptr) return;
    load_.set_taker(
        [this](const std::string& name, std::span<const float> weight,
               std::span<const float> bias) { return sink_->Linear(name, weight, bias); });
  }

  absl::StatusOr<LsLmWeights> Load();

 private:
  Norm LayerNorm(const std::string& name) {
    return load_.LayerNorm(name, config_.width, kLsNormEps);
  }
  // In fp32, whatever the compute type.
  std::optional<DenseLayer> FloatLinear(const WeightLoader::Part& part);
  std::vector<float> QueryBias(const std::string& name, const std::vector<int64_t>& shape);
  void Embeddings();
  void Layer(int index);

  const LsLmConfig& config_;
  WeightLoader load_;
  LsLmLayerSink* const sink_;  // Gets linears and vectors; null: they stay.
  PanelRules float_rules_;
  LsLmWeights weights_;
};

std::optional<DenseLayer> Loader::FloatLinear(const WeightLoader::Part& part) {
  const int64_t width = config_.width;
  const std::vector<float> weight = load_.Copy(load_.Get(part.name + ".weight", {part.out, width}));
  std::vector<float> bias(static_cast<size_t>(part.out));
  if (part.bias) bias = load_.Vector(part.name + ".bias", part.out);
  if (!load_.ok() || !load_.reads()) return std::nullopt;
  absl::StatusOr<Linear> linear =
      Linear::Pack(part.name, weight, part.out, width, Compute::kFp32, float_rules_);
  if (!linear.ok()) {
    load_.Fail(linear.status());
    return std::nullopt;
  }
  load_.CountBytes(static_cast<double>(linear->bytes()));
  return DenseLayer{*std::move(linear), std::move(bias)};
}

std::vector<float> Loader::QueryBias(const std::string& name, const std::vector<int64_t>& shape) {
  std::vector<float> values = load_.Copy(load_.Get(name, shape));
  const float scale = std::sqrt(static_cast<float>(config_.head_dim()));
  for (float& value : values) value *= scale;
  return values;
}

void Loader::Embeddings() {
  const int64_t width = config_.width, vocab = config_.vocab;
  const std::array<std::string, 2> names = {kPrefix + "in_emb.weight", kPrefix + "out_emb.weight"};
  weights_.words = load_.GetTied(names, {vocab, width});
  KeepTable(weights_.words, load_);
  const std::string frequencies = kPrefix + "pos_emb.inv_freq";
  if (config_.exact_frequencies || !load_.source().Has(frequencies)) {
    load_.source().Ignore(frequencies);
    weights_.frequencies = ExactFrequencies(config_.width);
  } else {
    weights_.frequencies = load_.Vector(frequencies, width / 2);
  }
  std::vector<float> bias = load_.Vector(kPrefix + "out_emb.bias", vocab);
  if (!load_.ok() || !load_.reads()) return;
  weights_.logits =
      load_.Pack(kPrefix + "out_emb", ToFloat32(*weights_.words), std::move(bias), vocab, width);
}

void Loader::Layer(int index) {
  const std::string layer = absl::StrCat(kPrefix, "layers.", index, ".");
  const std::string attention = layer + "attn.";
  const int64_t width = config_.width, heads = config_.heads, dim = config_.head_dim();
  const bool biases = config_.biases;
  const int64_t inner = config_.intermediate;
  auto project = load_.Stack(attention,
                             {{"proj_query", width, biases},
                              {"proj_key", width, biases},
                              {"proj_val", width, biases},
                              {"dconv_1", config_.columns()}},
                             width);
  auto out = load_.Dense(attention + "proj_out", width, width, biases);
  auto expand = load_.Dense(layer + "ff.fc1", inner, width);
  auto contract = load_.Dense(layer + "ff.fc2", width, inner);
  LsLmVectors vectors;
  vectors.norm1 = LayerNorm(layer + "norm1");
  vectors.norm2 = LayerNorm(layer + "norm2");
  vectors.window_norm = LayerNorm(attention + "dual_ln_win");
  vectors.segment_norm = LayerNorm(attention + "dual_ln_dproj");
  vectors.window_add = QueryBias(attention + "r_w_bias", {1, heads, 1, 1, dim});
  std::vector<float> distance_add = QueryBias(attention + "r_r_bias", {1, heads, 1, dim});
  auto distances = FloatLinear({attention + "r_net", width, false});
  auto segments = FloatLinear({attention + "r_net_chunk", width, true});
  if (!load_.ok() || !load_.reads()) return;
  weights_.positions.push_back(
      {*std::move(distances), *std::move(segments), std::move(distance_add)});
  if (sink_ != nullptr) return sink_->EndLayer(vectors);
  for (const auto* dense : {&project, &out, &expand, &contract}) {
    NarrowSizes(**dense, weights_.sizes);
  }
  weights_.layers.push_back({std::move(vectors), *std::move(project), *std::move(out),
                             *std::move(expand), *std::move(contract)});
}

absl::StatusOr<LsLmWeights> Loader::Load() {
  weights_.sizes = {true, true, true};
  Embeddings();
  for (int i = 0; i < config_.layers && load_.ok(); ++i) Layer(i);
  if (absl::Status status = load_.Finish(); !status.ok()) return status;
  weights_.parameters = load_.parameters();
  weights_.memory_bytes = load_.memory_bytes();
  return std::move(weights_);
}

std::vector<float> Normalised(const float* part, const Norm& norm, int64_t width) {
  const std::vector<float> zeros(static_cast<size_t>(width));
  std::vector<float> row(static_cast<size_t>(width));
  ChooseRowKernels(Compute::kFp32).bias_norm(part, zeros.data(), norm.view(), width, row.data());
  return row;
}

// The layer's input before the text is zero: norm1 makes its bias of it.
LsLmZeroRow ZeroRow(const LsLmConfig& config, const LsLmLayer& layer) {
  const int64_t width = config.width;
  const std::vector<float> zeros(static_cast<size_t>(width));
  const float* row = config.pre_norm ? layer.norm1.beta.data() : zeros.data();
  std::vector<float> projected(static_cast<size_t>(layer.project.out()));
  ApplyToRows(layer.project, {&row, 1}, Activation::kNone, TorchParallelFor(), projected.data());
  const float* key = projected.data() + width;
  const float* value = key + width;
  return {Normalised(key, layer.window_norm, width), Normalised(value, layer.window_norm, width),
          Normalised(key, layer.segment_norm, width), Normalised(value, layer.segment_norm, width)};
}

}  // namespace

absl::StatusOr<LsLmWeights> LoadLsLmWeights(const LsLmConfig& config, const Checkpoint& checkpoint,
                                            const std::string& origin,
                                            std::optional<Compute> compute) {
  absl::StatusOr<LsLmWeights> weights;
  absl::Status status = GuardTorch(origin, [&] {
    weights = Loader(config, checkpoint, origin, compute, nullptr).Load();
    if (!weights.ok() || !config.zero_memory) return;
    for (const LsLmLayer& layer : weights->layers) weights->zero.push_back(ZeroRow(config, layer));
  });
  if (!status.ok()) return status;
  return weights;
}

absl::StatusOr<LsLmWeights> LoadLsLmHost(const LsLmConfig& config, const Checkpoint& checkpoint,
                                         const std::string& origin, LsLmLayerSink& sink) {
  return Loader(config, checkpoint, origin, Compute::kFp32, &sink).Load();
}

}  // namespace longview::models
