#include "models/transformer_ls/weights.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/span/span_call.h"
#include "models/parallel.h"
#include "models/status_macros.h"
#include "models/transformer_ls/positions.h"
#include "models/transformer_ls/zero_blocks.h"

namespace longview::models {
namespace {

constexpr float kNormEps = 1e-5f;
const std::string kPrefix = "decoder.model.";

// fairseq's sinusoid, for a file without frequencies: 10000^(-2i / d), in fp32.
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
         std::optional<WeightFormat> format, DeviceStore* store, int max_tokens)
      : config_(config),
        checkpoint_(checkpoint),
        origin_(origin),
        load_(checkpoint, origin, format),
        store_(store),
        place_(load_, store),
        segment_ids_(std::max<int64_t>(1, config.pattern().MostSegmentIds(max_tokens))) {
    load_.set_packs_rows(true);
  }

  absl::StatusOr<LsLmWeights> Load();

 private:
  bool reads() const { return load_.ok() && load_.reads(); }
  NormWeight LayerNorm(const std::string& name) {
    return place_.Norm(load_.LayerNorm(name, config_.width, kNormEps), config_.width);
  }
  std::vector<WeightLoader::Part> Projections() const {
    const int64_t width = config_.width;
    return {{"proj_query", width, config_.biases},
            {"proj_key", width, config_.biases},
            {"proj_val", width, config_.biases},
            {"dconv_1", config_.columns()}};
  }
  // In fp32, whatever the compute type; unset where nothing is read.
  std::optional<DenseLayer> FloatLinear(const WeightLoader::Part& part);
  Table QueryBias(const std::string& name, const std::vector<int64_t>& shape);
  void Embeddings();
  void Layer(int index);
  void Positions(const std::string& attention, LsLmLayer& layer);
  void ZeroMemory(const std::string& attention, LsLmLayer& layer);

  const LsLmConfig& config_;
  const Checkpoint& checkpoint_;
  const std::string& origin_;
  WeightLoader load_;
  DeviceStore* const store_;
  WeightPlacer place_;
  const int64_t segment_ids_;  // Entries of a device's tables of segments.
  PanelRules float_rules_;
  LsLmWeights weights_;
};

std::optional<DenseLayer> Loader::FloatLinear(const WeightLoader::Part& part) {
  const int64_t width = config_.width;
  const std::vector<float> weight = load_.Copy(load_.Get(part.name + ".weight", {part.out, width}));
  std::vector<float> bias(static_cast<size_t>(part.out));
  if (part.bias) bias = load_.Vector(part.name + ".bias", part.out);
  if (!reads()) return std::nullopt;
  absl::StatusOr<Linear> linear =
      Linear::Pack(part.name, weight, part.out, width, Compute::kFp32, float_rules_);
  if (!linear.ok()) {
    load_.Fail(linear.status());
    return std::nullopt;
  }
  load_.CountBytes(static_cast<double>(linear->bytes()));
  return DenseLayer{*std::move(linear), std::move(bias)};
}

Table Loader::QueryBias(const std::string& name, const std::vector<int64_t>& shape) {
  std::vector<float> values = load_.Copy(load_.Get(name, shape));
  const float scale = std::sqrt(static_cast<float>(config_.head_dim()));
  for (float& value : values) value *= scale;
  return place_.Values(std::move(values), 1, config_.width);
}

void Loader::Embeddings() {
  const int64_t width = config_.width, vocab = config_.vocab;
  const std::array<std::string, 2> names = {kPrefix + "in_emb.weight", kPrefix + "out_emb.weight"};
  const TensorView* words = load_.GetTied(names, {vocab, width});
  weights_.words = place_.Stored(words, vocab, width);
  const std::string frequencies = kPrefix + "pos_emb.inv_freq";
  if (config_.exact_frequencies || !load_.source().Has(frequencies)) {
    load_.source().Ignore(frequencies);
    weights_.frequencies = ExactFrequencies(config_.width);
  } else {
    weights_.frequencies = load_.Vector(frequencies, width / 2);
  }
  std::vector<float> bias = load_.Vector(kPrefix + "out_emb.bias", vocab);
  const std::vector<float> values = reads() ? load_.Copy(words) : std::vector<float>();
  weights_.logits = place_.Pack(kPrefix + "out_emb", values, std::move(bias), vocab, width);
}

// The host makes its tables as texts grow, a device has them whole.
void Loader::Positions(const std::string& attention, LsLmLayer& layer) {
  const int64_t width = config_.width;
  std::optional<DenseLayer> distances = FloatLinear({attention + "r_net", width, false});
  std::optional<DenseLayer> segments = FloatLinear({attention + "r_net_chunk", width, true});
  if (store_ == nullptr) {
    if (reads()) weights_.positions.push_back({*std::move(distances), *std::move(segments)});
    return;
  }
  const auto place = [&](const std::optional<DenseLayer>& linear, int clamp, int64_t entries) {
    std::vector<float> rows;
    if (linear) {
      const TorchParallelFor pool;
      rows = HeadRows(PositionRows(*linear, weights_.frequencies, clamp, 0, entries, pool),
                      config_.heads, config_.head_dim());
    }
    return place_.Typed("a table of positions", std::move(rows), config_.heads * entries,
                        config_.head_dim());
  };
  layer.window_positions = place(distances, config_.clamp_distance, config_.window);
  layer.segment_positions = place(segments, config_.clamp_segments, segment_ids_);
}

std::vector<float> Normalised(const float* part, const Norm& norm, int64_t width) {
  const std::vector<float> zeros(static_cast<size_t>(width));
  std::vector<float> row(static_cast<size_t>(width));
  ChooseRowKernels(Compute::kFp32).bias_norm(part, zeros.data(), norm.view(), width, row.data());
  return row;
}

// The layer's input before the text is zero: norm1 makes its bias of it.
void Loader::ZeroMemory(const std::string& attention, LsLmLayer& layer) {
  const int64_t width = config_.width;
  std::array<std::vector<float>, kLsZeroParts> rows;
  if (reads()) {
    std::optional<DenseLayer> packed;
    if (store_ != nullptr) {
      WeightLoader again(checkpoint_, origin_, Compute::kFp32);
      packed = again.Stack(attention, Projections(), width);
      if (!packed) return load_.Fail(again.Finish());
    }
    const DenseLayer& project = packed ? *packed : *layer.project.host;
    const std::vector<float> zeros(static_cast<size_t>(width));
    const float* row = config_.pre_norm ? layer.norm1.host.beta.data() : zeros.data();
    std::vector<float> projected(static_cast<size_t>(project.out()));
    ApplyToRows(project, {&row, 1}, Activation::kNone, TorchParallelFor(), projected.data());
    for (int part = 0; part < kLsZeroParts; ++part) {
      const bool window = part < kLsSegmentKey;
      const float* from = projected.data() + width * (1 + part % 2);
      rows[static_cast<size_t>(part)] =
          Normalised(from, window ? layer.window_norm.host : layer.segment_norm.host, width);
    }
  }
  if (store_ != nullptr) {
    const int dim = config_.head_dim(), pitch = kernels::cuda::BlockPitch(dim);
    for (size_t part = 0; part < rows.size(); ++part) {
      std::vector<float> block = ZeroRowBlock(rows[part], dim, pitch);
      layer.zero_blocks[part] =
          place_.Typed("the norm of a hidden state of zeros", std::move(block),
                       config_.heads * kernels::kBlockSlots, pitch);
    }
  }
  weights_.zero.push_back(std::move(rows));
}

void Loader::Layer(int index) {
  const std::string name = absl::StrCat(kPrefix, "layers.", index, ".");
  const std::string attention = name + "attn.";
  const int64_t width = config_.width, heads = config_.heads, dim = config_.head_dim();
  LsLmLayer& layer = weights_.layers.emplace_back();
  layer.project = place_.Stack(attention, Projections(), width);
  layer.out = place_.Linear(attention + "proj_out", width, width, config_.biases);
  layer.expand = place_.Linear(name + "ff.fc1", config_.intermediate, width);
  layer.contract = place_.Linear(name + "ff.fc2", width, config_.intermediate);
  layer.norm1 = LayerNorm(name + "norm1");
  layer.norm2 = LayerNorm(name + "norm2");
  layer.window_norm = LayerNorm(attention + "dual_ln_win");
  layer.segment_norm = LayerNorm(attention + "dual_ln_dproj");
  layer.window_add = QueryBias(attention + "r_w_bias", {1, heads, 1, 1, dim});
  layer.distance_add = QueryBias(attention + "r_r_bias", {1, heads, 1, dim});
  Positions(attention, layer);
  if (config_.zero_memory && load_.ok()) ZeroMemory(attention, layer);
}

absl::StatusOr<LsLmWeights> Loader::Load() {
  Embeddings();
  for (int i = 0; i < config_.layers && load_.ok(); ++i) Layer(i);
  RETURN_IF_ERROR(load_.Finish());
  weights_.parameters = load_.parameters();
  weights_.memory_bytes = load_.memory_bytes();
  return std::move(weights_);
}

}  // namespace

absl::StatusOr<LsLmWeights> LoadLsLmWeights(const LsLmConfig& config, const Checkpoint& checkpoint,
                                            const std::string& origin,
                                            std::optional<WeightFormat> format, DeviceStore* store,
                                            int max_tokens) {
  return Loader(config, checkpoint, origin, format, store, max_tokens).Load();
}

}  // namespace longview::models
