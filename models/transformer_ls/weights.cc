#include "models/transformer_ls/weights.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/convert.h"
#include "models/parallel.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

constexpr float kNormEps = 1e-5f;
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
         std::optional<Compute> compute)
      : config_(config), compute_(compute), load_(checkpoint, origin, compute) {}

  absl::StatusOr<LsLmWeights> Load();

 private:
  // A linear whose bias may be missing by design.
  struct Part {
    std::string name;
    int64_t out = 0;
    bool bias = false;
  };

  Norm LayerNorm(const std::string& name) { return load_.LayerNorm(name, config_.width, kNormEps); }
  // Parts of equal input, their outputs side by side; missing biases are zeros. `rows` gets a
  // second pack, for decoding, where that pays.
  std::optional<DenseLayer> Stack(const std::vector<Part>& parts, int64_t in,
                                  std::optional<RowLinear>* rows);
  // The same as fp32.
  std::optional<DenseLayer> FloatLinear(const Part& part);
  std::vector<float> QueryBias(const std::string& name, const std::vector<int64_t>& shape);
  void Embeddings();
  // Memory for second packs, where they pay. Throws std::bad_alloc.
  void ReserveRowPacks();
  void Layer(int index);

  const LsLmConfig& config_;
  const std::optional<Compute> compute_;
  WeightLoader load_;
  PanelRules float_rules_;
  LsLmWeights weights_;
  Carver row_packs_{nullptr};
};

std::optional<DenseLayer> Loader::Stack(const std::vector<Part>& parts, int64_t in,
                                        std::optional<RowLinear>* rows) {
  std::vector<float> weight, bias;
  int64_t out = 0;
  for (const Part& part : parts) {
    const std::vector<float> rows = load_.Copy(load_.Get(part.name + ".weight", {part.out, in}));
    weight.insert(weight.end(), rows.begin(), rows.end());
    std::vector<float> part_bias(static_cast<size_t>(part.out));
    if (part.bias) part_bias = load_.Vector(part.name + ".bias", part.out);
    bias.insert(bias.end(), part_bias.begin(), part_bias.end());
    out += part.out;
  }
  if (load_.ok() && weights_.row_packs.bytes() > 0) {
    const size_t bytes = RowLinear::PackBytes(out, in, *compute_);
    rows->emplace(weight, out, in, *compute_, row_packs_.TakeBytes(bytes));
  }
  return load_.Pack(parts[0].name, weight, std::move(bias), out, in);
}

std::optional<DenseLayer> Loader::FloatLinear(const Part& part) {
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
  if (weights_.words != nullptr) load_.CountBytes(static_cast<double>(weights_.words->bytes));
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

void Loader::ReserveRowPacks() {
  if (!compute_ || !RowLinear::Pays(*compute_)) return;
  const int64_t width = config_.width, inner = config_.intermediate;
  const size_t layer = RowLinear::PackBytes(3 * width + config_.columns(), width, *compute_) +
                       RowLinear::PackBytes(width, width, *compute_) +
                       RowLinear::PackBytes(inner, width, *compute_) +
                       RowLinear::PackBytes(width, inner, *compute_);
  const size_t logits = RowLinear::PackBytes(config_.vocab, width, *compute_);
  weights_.row_packs = Scratch::InHugePages(static_cast<size_t>(config_.layers) * layer + logits);
  row_packs_ = Carver(weights_.row_packs.data());
  load_.CountBytes(static_cast<double>(weights_.row_packs.bytes()));
}

void Loader::Layer(int index) {
  const std::string layer = absl::StrCat(kPrefix, "layers.", index, ".");
  const std::string attention = layer + "attn.";
  const int64_t width = config_.width, heads = config_.heads, dim = config_.head_dim();
  const bool biases = config_.biases;
  LsLmRowLinears rows;
  auto project = Stack({{attention + "proj_query", width, biases},
                        {attention + "proj_key", width, biases},
                        {attention + "proj_val", width, biases},
                        {attention + "dconv_1", config_.columns(), true}},
                       width, &rows.project);
  auto out = Stack({{attention + "proj_out", width, biases}}, width, &rows.out);
  const int64_t inner = config_.intermediate;
  auto expand = Stack({{layer + "ff.fc1", inner, true}}, width, &rows.expand);
  auto contract = Stack({{layer + "ff.fc2", width, true}}, inner, &rows.contract);
  Norm norm1 = LayerNorm(layer + "norm1"), norm2 = LayerNorm(layer + "norm2");
  Norm window_norm = LayerNorm(attention + "dual_ln_win");
  Norm segment_norm = LayerNorm(attention + "dual_ln_dproj");
  std::vector<float> window_add = QueryBias(attention + "r_w_bias", {1, heads, 1, 1, dim});
  std::vector<float> distance_add = QueryBias(attention + "r_r_bias", {1, heads, 1, dim});
  auto distances = FloatLinear({attention + "r_net", width, false});
  auto segments = FloatLinear({attention + "r_net_chunk", width, true});
  if (!load_.ok() || !load_.reads()) return;
  for (const auto* dense : {&project, &out, &expand, &contract}) {
    NarrowSizes(**dense, weights_.sizes);
  }
  weights_.layers.push_back({*std::move(project), *std::move(out), *std::move(expand),
                             *std::move(contract), std::move(norm1), std::move(norm2),
                             std::move(window_norm), std::move(segment_norm), std::move(window_add),
                             std::move(distance_add), *std::move(distances), *std::move(segments),
                             std::move(rows)});
}

absl::StatusOr<LsLmWeights> Loader::Load() {
  weights_.sizes = {true, true, true};
  Embeddings();
  ReserveRowPacks();
  for (int i = 0; i < config_.layers && load_.ok(); ++i) Layer(i);
  if (load_.ok() && weights_.row_packs.bytes() > 0) {
    const size_t bytes = RowLinear::PackBytes(config_.vocab, config_.width, *compute_);
    weights_.logit_rows.emplace(ToFloat32(*weights_.words), config_.vocab, config_.width, *compute_,
                                row_packs_.TakeBytes(bytes));
  }
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
                                            const std::string& origin, Compute compute) {
  absl::StatusOr<LsLmWeights> weights;
  absl::Status status = GuardTorch(origin, [&] {
    weights = Loader(config, checkpoint, origin, compute).Load();
    if (!weights.ok() || !config.zero_memory) return;
    for (const LsLmLayer& layer : weights->layers) weights->zero.push_back(ZeroRow(config, layer));
  });
  if (!status.ok()) return status;
  return weights;
}

absl::StatusOr<double> CheckLsLmWeights(const LsLmConfig& config, const Checkpoint& checkpoint,
                                        const std::string& origin) {
  absl::StatusOr<LsLmWeights> weights = Loader(config, checkpoint, origin, std::nullopt).Load();
  if (!weights.ok()) return weights.status();
  return weights->parameters;
}

}  // namespace longview::models
