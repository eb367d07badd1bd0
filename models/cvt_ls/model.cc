#include "models/cvt_ls/model.h"

#include <algorithm>
#include <utility>

#include "models/cvt_ls/batch.h"
#include "models/parallel.h"
#include "models/vision/model.h"

namespace longview::models {
namespace {

absl::StatusOr<CvtConfig> ReadConfig(const ModelDirectory& directory, bool backbone) {
  return ParseCvtConfig(directory.config, directory.common, directory.config_path, backbone);
}

VisionFacts FactsOf(const CvtConfig& config) {
  VisionFacts facts;
  facts.family = "cvt_ls";
  facts.architecture = config.architecture;
  facts.width = config.stages.back().width;
  for (size_t s = 0; s < kCvtStages; ++s) {
    facts.strides.push_back(config.stride(s));
    facts.channels.push_back(config.stages[s].width);
  }
  facts.labels = config.labels;
  facts.problem_type = config.problem_type;
  return facts;
}

class CvtLs final : public VisionFamily {
 public:
  CvtLs(CvtConfig config, CvtWeights weights, Compute compute)
      : config_(std::move(config)), weights_(std::move(weights)), facts_(FactsOf(config_)) {
    context_ = {&config_, &weights_, compute,
                compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa(),
                &pool_};
  }

  const VisionFacts& facts() const override { return facts_; }
  Compute compute() const override { return context_.compute; }
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override { return weights_.memory_bytes; }
  ImageSize typical_size() const override { return config_.image; }
  absl::Status CheckSize(ImageSize size) const override { return CheckCvtSize(config_, size); }

  std::unique_ptr<VisionBatch> Begin(std::span<const VisionInput> inputs, ScratchKeeper& scratch,
                                     EncoderTimes* times) const override {
    return std::make_unique<CvtBatch>(context_, inputs, scratch, times);
  }

  EncoderWork WorkOf(ImageSize size) const override {
    EncoderWork work;
    const std::array<ImageSize, kCvtStages> maps = *CvtMaps(size);
    double channels = 3;
    for (size_t s = 0; s < kCvtStages; ++s) {
      const CvtStage& stage = config_.stages[s];
      const double d = stage.width, g = stage.class_token ? 1 : 0;
      const double tokens = static_cast<double>(maps[s].height) * maps[s].width;
      const double rows = tokens + g;
      const double side = stage.window + 2 * std::max(stage.window / 2, 1);
      const double keys = stage.window == 0 ? 0 : std::min(side * side, tokens);
      const double columns = stage.columns() * (config_.shared_landmarks ? 1 : 2);
      const double out = stage.out_projection ? 1 : 0;
      work.linear += tokens * d * channels * kCvtEmbeddings[s].kernel * kCvtEmbeddings[s].kernel;
      work.linear += stage.blocks * rows * d * ((3 + out) * d + 2 * stage.hidden + columns);
      work.attention += stage.blocks * 2 * d * (tokens * (keys + 2 * stage.ranks + g) + g * rows);
      work.rows += stage.blocks * 52 * rows * d;  // 16 and four depthwise convolutions.
      channels = d;
    }
    work.linear += static_cast<double>(config_.labels.size()) * facts_.width;
    return work;
  }

 private:
  size_t MeasureWorkspace(ImageSize size) const override {
    return CvtBatch::ScratchBytes(context_, {&size, 1});
  }

  const CvtConfig config_;
  const CvtWeights weights_;
  const VisionFacts facts_;
  const TorchParallelFor pool_;
  CvtContext context_;
};

absl::StatusOr<std::unique_ptr<VisionFamily>> BuildAt(const ModelDirectory& directory,
                                                      const BackbonePlace* place, Compute compute) {
  absl::StatusOr<CvtConfig> config = ReadConfig(directory, place != nullptr);
  if (!config.ok()) return config.status();
  absl::StatusOr<CvtWeights> weights =
      LoadCvtWeights(*config, place, directory.checkpoint, directory.path, compute);
  if (!weights.ok()) return weights.status();
  return std::make_unique<CvtLs>(*std::move(config), *std::move(weights), compute);
}

absl::StatusOr<std::unique_ptr<VisionFamily>> Build(const ModelDirectory& directory,
                                                    Compute compute) {
  return BuildAt(directory, nullptr, compute);
}

absl::StatusOr<std::unique_ptr<VisionFamily>> BuildBackbone(const ModelDirectory& directory,
                                                            const BackbonePlace& place,
                                                            Compute compute) {
  return BuildAt(directory, &place, compute);
}

absl::StatusOr<BackboneFacts> DescribeBackbone(const ModelDirectory& directory,
                                               const BackbonePlace& place) {
  const absl::StatusOr<CvtConfig> config = ReadConfig(directory, true);
  if (!config.ok()) return config.status();
  const absl::StatusOr<double> parameters =
      CheckCvtWeights(*config, &place, directory.checkpoint, directory.path);
  if (!parameters.ok()) return parameters.status();
  return BackboneFacts{FactsOf(*config), *parameters};
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeCvtLs(const ModelDirectory& directory) {
  const absl::StatusOr<CvtConfig> config = ReadConfig(directory, false);
  if (!config.ok()) return config.status();
  const absl::StatusOr<double> parameters =
      CheckCvtWeights(*config, nullptr, directory.checkpoint, directory.path);
  if (!parameters.ok()) return parameters.status();
  return DescribeVision(directory, FactsOf(*config), *parameters);
}

absl::StatusOr<std::unique_ptr<Model>> LoadCvtLs(ModelDirectory directory,
                                                 const LoadOptions& options) {
  return LoadVisionModel(std::move(directory), options, Build);
}

BackboneBuilder CvtLsBackbone() { return {"cvt_ls", DescribeBackbone, BuildBackbone}; }

}  // namespace longview::models
