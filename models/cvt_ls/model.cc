#include "models/cvt_ls/model.h"

#include <algorithm>
#include <utility>

#include "models/cvt_ls/batch.h"
#include "models/vision/weighted_family.h"

namespace longview::models {
namespace {

class CvtLs final : public WeightedVision<CvtBatch, LoadCvtWeights> {
 public:
  using WeightedVision::WeightedVision;

  absl::Status CheckSize(ImageSize size) const override { return CheckCvtSize(config_, size); }

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
};

using Entry = VisionEntry<CvtLs, ParseCvtConfig>;

}  // namespace

absl::StatusOr<ModelInfo> DescribeCvtLs(const ModelDirectory& directory) {
  return Entry::Describe(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadCvtLs(ModelDirectory directory,
                                                 const LoadOptions& options) {
  return Entry::Load(std::move(directory), options);
}

BackboneBuilder CvtLsBackbone() { return Entry::Backbone("cvt_ls"); }

}  // namespace longview::models
