#include "models/cvt_ls/weights.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

class Loader {
 public:
  Loader(const CvtConfig& config, const BackbonePlace* place, const Checkpoint& checkpoint,
         const std::string& origin, std::optional<WeightFormat> format, DeviceStore* store)
      : config_(config),
        backbone_(place),
        load_(checkpoint, origin, format),
        place_(load_, store) {}

  absl::StatusOr<CvtWeights> Load();

 private:
  enum class Kernels { kBatchNorm, kStandardised, kAsStored };

  // Separable convolution `name`.
  Separable Load(const std::string& name, int64_t out, int64_t in, Kernels kernels, bool bias);
  void FoldBatchNorm(const std::string& name, int64_t width, std::vector<float>& kernels,
                     std::vector<float>& bias);
  NormWeight LayerNorm(const std::string& name, int64_t width, float eps) {
    return place_.Norm(load_.LayerNorm(name, width, eps), width);
  }
  std::vector<float> Bias(const std::string& name, bool present, int64_t size) {
    return present ? load_.Vector(name, size) : std::vector<float>(size);
  }

  void Embedding(size_t index, CvtStageWeights& out);
  CvtBlock Block(const std::string& name, const CvtStage& stage);
  void Attention(const std::string& name, const CvtStage& stage, CvtBlock& block);
  void Head();

  const CvtConfig& config_;
  const BackbonePlace* const backbone_;
  WeightLoader load_;
  WeightPlacer place_;
  std::string prefix_;
  CvtWeights weights_;
};

void Loader::FoldBatchNorm(const std::string& name, int64_t width, std::vector<float>& kernels,
                           std::vector<float>& bias) {
  const std::vector<float> gamma = load_.Vector(name + "weight", width);
  const std::vector<float> beta = load_.Vector(name + "bias", width);
  const std::vector<float> mean = load_.Vector(name + "running_mean", width);
  const std::vector<float> variance = load_.Vector(name + "running_var", width);
  load_.source().Ignore(name + "num_batches_tracked");
  if (!load_.ok() || !load_.reads()) return;
  for (int64_t c = 0; c < width; ++c) {
    const double factor = gamma[c] / std::sqrt(double{variance[c]} + config_.batch_eps);
    for (int t = 0; t < kDepthwiseTaps; ++t) {
      float& value = kernels[c * kDepthwiseTaps + t];
      value = static_cast<float>(value * factor);
    }
    bias[c] = static_cast<float>((double{bias[c]} - mean[c]) * factor + beta[c]);
  }
}

Separable Loader::Load(const std::string& name, int64_t out, int64_t in, Kernels kernels,
                       bool bias) {
  std::vector<float> stored = load_.Copy(load_.Get(name + "depthwise.weight", {in, 1, 3, 3}));
  std::vector<float> added = Bias(name + "depthwise.bias", bias, in);
  if (kernels == Kernels::kStandardised) StandardiseKernels(config_.standard, stored);
  if (kernels == Kernels::kBatchNorm) FoldBatchNorm(name + "bn.", in, stored, added);
  std::vector<float> taps(stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    taps[i % kDepthwiseTaps * in + i / kDepthwiseTaps] = stored[i];
  }
  load_.CountBytes(4.0 * static_cast<double>(taps.size()));
  Separable made;
  made.taps = place_.Values(std::move(taps), kDepthwiseTaps, in);
  made.bias = place_.Values(std::move(added), 1, in);
  const std::vector<float> weight =
      load_.Copy(load_.Get(name + "pointwise.weight", {out, in, 1, 1}));
  std::vector<float> pointwise_bias = Bias(name + "pointwise.bias", bias, out);
  made.pointwise = place_.Pack(name + "pointwise", weight, std::move(pointwise_bias), out, in);
  return made;
}

void Loader::Embedding(size_t index, CvtStageWeights& out) {
  const std::string name = absl::StrCat(prefix_, "stage", index + 1, "_conv_embed.");
  const int64_t d = config_.stages[index].width, k = kCvtEmbeddings[index].kernel;
  if (index > 0) {
    out.embed = place_.Taps(name + "0", d, config_.stages[index - 1].width, k);
  } else {
    constexpr int64_t kChannels = 3;
    const std::vector<float> weight =
        load_.Copy(load_.Get(name + "0.weight", {d, kChannels, k, k}));
    std::vector<float> bias = load_.Vector(name + "0.bias", d);
    out.embed = place_.Pixels(name + "0", weight, std::move(bias), d, kChannels * k * k);
  }
  if (config_.embed_norm) out.embed_norm = LayerNorm(name + "2", d, config_.eps);
}

void Loader::Attention(const std::string& name, const CvtStage& stage, CvtBlock& block) {
  const int64_t d = stage.width;
  const Kernels kernels = config_.kernel_norm == CvtKernelNorm::kBatchNorm ? Kernels::kBatchNorm
                          : config_.kernel_norm == CvtKernelNorm::kNone    ? Kernels::kAsStored
                                                                           : Kernels::kStandardised;
  block.query = Load(name + "to_q.", d, d, kernels, config_.projection_bias);
  block.key = Load(name + "to_k.", d, d, kernels, config_.projection_bias);
  block.value = Load(name + "to_v.", d, d, kernels, config_.projection_bias);
  if (stage.ranks > 0) {
    const auto scores = [&](const std::string& part) {
      return Load(name + part, stage.columns(), d, Kernels::kStandardised, config_.landmark_bias);
    };
    block.landmarks = scores("to_dynamic_projection.");
    if (!config_.shared_landmarks) block.value_landmarks = scores("to_dynamic_projection_v.");
  }
  if (config_.dual_norm) {
    block.token_norm = LayerNorm(name + "dual_ln_full", d, config_.dual_eps);
    block.landmark_norm = LayerNorm(name + "dual_ln_dp", d, config_.dual_eps);
  }
  if (stage.out_projection) block.out = place_.Linear(name + "to_out.0", d, d);
}

CvtBlock Loader::Block(const std::string& name, const CvtStage& stage) {
  CvtBlock block;
  const int64_t d = stage.width;
  block.attention_norm = LayerNorm(name + "0.norm", d, config_.eps);
  Attention(name + "0.fn.", stage, block);
  block.mlp_norm = LayerNorm(name + "1.norm", d, config_.eps);
  block.expand = place_.Linear(name + "1.fn.net.0", stage.hidden, d);
  block.contract = place_.Linear(name + "1.fn.net.3", d, stage.hidden);
  return block;
}

// In a detector the head is what the classifier left.
void Loader::Head() {
  if (config_.backbone) {
    load_.source().Ignore(prefix_ + "mlp_head.*");
    return;
  }
  const int64_t d = config_.stages.back().width;
  weights_.norm = LayerNorm(prefix_ + "mlp_head.0", d, config_.eps);
  if (!config_.labels.empty()) {
    weights_.head =
        load_.Dense(prefix_ + "mlp_head.1", static_cast<int64_t>(config_.labels.size()), d);
  }
}

absl::StatusOr<CvtWeights> Loader::Load() {
  if (backbone_ != nullptr) {
    prefix_ = backbone_->prefix;
    for (const std::string& pattern : backbone_->others) load_.source().Ignore(pattern);
  }
  for (size_t s = 0; s < kCvtStages && load_.ok(); ++s) {
    CvtStageWeights& stage = weights_.stages[s];
    Embedding(s, stage);
    for (int b = 0; b < config_.stages[s].blocks && load_.ok(); ++b) {
      stage.blocks.push_back(
          Block(absl::StrCat(prefix_, "stage", s + 1, "_transformer.0.layers.", b, "."),
                config_.stages[s]));
    }
  }
  const CvtStage& last = config_.stages.back();
  if (last.class_token) {
    weights_.class_row = place_.Values(
        load_.Copy(load_.Get(prefix_ + "cls_token", {1, 1, last.width})), 1, last.width);
  }
  Head();
  RETURN_IF_ERROR(load_.Finish());
  weights_.parameters = load_.parameters();
  weights_.memory_bytes = load_.memory_bytes();
  return std::move(weights_);
}

}  // namespace

void StandardiseKernels(CvtStandard standard, std::vector<float>& kernels) {
  constexpr double kEps = 1e-5;
  for (size_t first = 0; first < kernels.size(); first += kDepthwiseTaps) {
    float* const kernel = kernels.data() + first;
    double mean = 0, squares = 0;
    for (int t = 0; t < kDepthwiseTaps; ++t) mean += kernel[t];
    mean /= kDepthwiseTaps;
    for (int t = 0; t < kDepthwiseTaps; ++t) squares += (kernel[t] - mean) * (kernel[t] - mean);
    double divisor = std::sqrt(squares);
    if (standard == CvtStandard::kQiao) {
      divisor = std::sqrt(squares / (kDepthwiseTaps - 1)) + kEps;
    } else if (standard == CvtStandard::kBiased) {
      divisor = std::sqrt(squares / kDepthwiseTaps + kEps);
    }
    for (int t = 0; t < kDepthwiseTaps; ++t) {
      kernel[t] = squares == 0 ? 0 : static_cast<float>((kernel[t] - mean) / divisor);
    }
  }
}

absl::StatusOr<CvtWeights> LoadCvtWeights(const CvtConfig& config, const BackbonePlace* place,
                                          const Checkpoint& checkpoint, const std::string& origin,
                                          std::optional<WeightFormat> format, DeviceStore* store) {
  return Loader(config, place, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
