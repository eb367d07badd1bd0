#include "models/vil/model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "models/parallel.h"
#include "models/vil/batch.h"
#include "models/vision/model.h"

namespace longview::models {
namespace {

using ParseConfig = absl::StatusOr<VilConfig> (*)(const nlohmann::json& config,
                                                  const CommonConfig& common,
                                                  const std::string& origin, bool backbone);

VisionFacts FactsOf(const VilConfig& config) {
  VisionFacts facts;
  facts.family = config.family;
  facts.architecture = config.architecture;
  facts.width = config.feature_width();
  for (size_t s = 0; s < config.stages.size(); ++s) {
    facts.strides.push_back(config.stride(s));
    facts.channels.push_back(config.stages[s].width);
  }
  facts.labels = config.labels;
  facts.problem_type = config.problem_type;
  return facts;
}

// Pairs of places on an axis of n that squares of w, widened by e, hold.
double PairsAlong(int n, int w, int e) {
  double sum = 0;
  for (int begin = 0; begin < n; begin += w) {
    const int from = std::max(0, begin - e), to = std::min(n, begin + w + e);
    sum += static_cast<double>(std::min(w, n - begin)) * (to - from);
  }
  return sum;
}

// Query-key products of an image's tokens in one stage, in channels of one head times heads.
double Products(const VilConfig& config, const VilStage& stage, ImageSize map) {
  const double local = static_cast<double>(map.height) * map.width, g = stage.globals;
  const double all = local + g;
  switch (stage.attention) {
    case VilAttention::kFull:
      return all * all;
    case VilAttention::kChunks: {
      if (config.only_global) return local * g + g * all;
      const int w = stage.features;
      return PairsAlong(map.height, w, w) * PairsAlong(map.width, w, w) + local * g + g * all;
    }
    case VilAttention::kLongShort: {
      const int w = stage.features, e = std::max(w / 2, 1);
      const double window = w == 0 ? 0 : PairsAlong(map.height, w, e) * PairsAlong(map.width, w, e);
      // Landmarks are read by every token and made of every token.
      return window + local * (2.0 * stage.ranks + g) + g * all;
    }
    case VilAttention::kPerformer:
      return 2 * all * stage.features;
    default:
      return all * static_cast<double>(ProjectedKeys(stage, map));
  }
}

class Vil final : public VisionFamily {
 public:
  Vil(VilConfig config, VilWeights weights, Compute compute)
      : config_(std::move(config)), weights_(std::move(weights)), facts_(FactsOf(config_)) {
    context_ = {
        &config_, &weights_,
        compute,  compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa(),
        &pool_,   &maps_};
  }

  const VisionFacts& facts() const override { return facts_; }
  Compute compute() const override { return context_.compute; }
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override { return weights_.memory_bytes; }
  ImageSize typical_size() const override { return config_.image; }

  absl::Status CheckSize(ImageSize size) const override {
    const absl::StatusOr<std::vector<ImageSize>> maps = VilMaps(config_, size);
    if (!maps.ok()) return maps.status();
    for (size_t s = 0; s < maps->size(); ++s) {
      if (config_.Fits(s, (*maps)[s])) continue;
      const char* hint = config_.backbone || config_.any_size
                             ? ""
                             : "; \"any_size\": true in config.json interpolates them";
      return absl::InvalidArgumentError(absl::StrCat(
          "pixels of ", size.height, " x ", size.width, ": the positions of stage ", s + 1, " fit ",
          config_.backbone ? "images up to " : "images of ", config_.image.height, " x ",
          config_.image.width, config_.backbone ? "" : " only", hint));
    }
    return absl::OkStatus();
  }

  std::unique_ptr<VisionBatch> Begin(std::span<const VisionInput> inputs, ScratchKeeper& scratch,
                                     EncoderTimes* times) const override {
    return std::make_unique<VilBatch>(context_, inputs, scratch, times);
  }

  EncoderWork WorkOf(ImageSize size) const override {
    EncoderWork work;
    const std::vector<ImageSize> maps = *VilMaps(config_, size);
    double channels = config_.channels;
    for (size_t s = 0; s < maps.size(); ++s) {
      const VilStage& stage = config_.stages[s];
      const double d = stage.width;
      const double local = static_cast<double>(maps[s].height) * maps[s].width;
      const double all = local + stage.globals;
      work.linear += local * d * channels * stage.patch * stage.patch;
      const double columns = double{1} * stage.heads * stage.ranks;
      work.linear += stage.blocks * all * d * (4 * d + 2.0 * stage.hidden + columns);
      work.attention += stage.blocks * 2 * d * Products(config_, stage, maps[s]);
      work.rows += stage.blocks * 16 * all * d;
      channels = d;
    }
    work.linear += static_cast<double>(config_.labels.size()) * config_.feature_width();
    return work;
  }

 private:
  size_t MeasureWorkspace(ImageSize size) const override {
    return VilBatch::ScratchBytes(context_, {&size, 1});
  }

  const VilConfig config_;
  const VilWeights weights_;
  const VisionFacts facts_;
  const TorchParallelFor pool_;
  mutable VilMapCache maps_;  // Of the executor's thread, as the batches are.
  VilContext context_;
};

absl::StatusOr<VilConfig> ReadConfig(const ModelDirectory& directory, ParseConfig parse,
                                     bool backbone) {
  return parse(directory.config, directory.common, directory.config_path, backbone);
}

absl::StatusOr<std::unique_ptr<VisionFamily>> BuildAt(const ModelDirectory& directory,
                                                      ParseConfig parse, const BackbonePlace* place,
                                                      Compute compute) {
  absl::StatusOr<VilConfig> config = ReadConfig(directory, parse, place != nullptr);
  if (!config.ok()) return config.status();
  absl::StatusOr<VilWeights> weights =
      LoadVilWeights(*config, place, directory.checkpoint, directory.path, compute);
  if (!weights.ok()) return weights.status();
  return std::make_unique<Vil>(*std::move(config), *std::move(weights), compute);
}

template <ParseConfig kParse>
absl::StatusOr<std::unique_ptr<VisionFamily>> Build(const ModelDirectory& directory,
                                                    Compute compute) {
  return BuildAt(directory, kParse, nullptr, compute);
}

template <ParseConfig kParse>
absl::StatusOr<std::unique_ptr<VisionFamily>> BuildBackbone(const ModelDirectory& directory,
                                                            const BackbonePlace& place,
                                                            Compute compute) {
  return BuildAt(directory, kParse, &place, compute);
}

absl::StatusOr<ModelInfo> Describe(const ModelDirectory& directory, ParseConfig parse) {
  const absl::StatusOr<VilConfig> config = ReadConfig(directory, parse, false);
  if (!config.ok()) return config.status();
  const absl::StatusOr<double> parameters =
      CheckVilWeights(*config, nullptr, directory.checkpoint, directory.path);
  if (!parameters.ok()) return parameters.status();
  return DescribeVision(directory, FactsOf(*config), *parameters);
}

template <ParseConfig kParse>
absl::StatusOr<BackboneFacts> DescribeBackbone(const ModelDirectory& directory,
                                               const BackbonePlace& place) {
  const absl::StatusOr<VilConfig> config = ReadConfig(directory, kParse, true);
  if (!config.ok()) return config.status();
  const absl::StatusOr<double> parameters =
      CheckVilWeights(*config, &place, directory.checkpoint, directory.path);
  if (!parameters.ok()) return parameters.status();
  return BackboneFacts{FactsOf(*config), *parameters};
}

}  // namespace

BackboneBuilder VilBackbone() {
  return {"vil", DescribeBackbone<ParseVilConfig>, BuildBackbone<ParseVilConfig>};
}
BackboneBuilder VilLsBackbone() {
  return {"vil_ls", DescribeBackbone<ParseVilLsConfig>, BuildBackbone<ParseVilLsConfig>};
}

absl::StatusOr<ModelInfo> DescribeVil(const ModelDirectory& directory) {
  return Describe(directory, ParseVilConfig);
}
absl::StatusOr<ModelInfo> DescribeVilLs(const ModelDirectory& directory) {
  return Describe(directory, ParseVilLsConfig);
}

absl::StatusOr<std::unique_ptr<Model>> LoadVil(ModelDirectory directory,
                                               const LoadOptions& options) {
  return LoadVisionModel(std::move(directory), options, Build<ParseVilConfig>);
}
absl::StatusOr<std::unique_ptr<Model>> LoadVilLs(ModelDirectory directory,
                                                 const LoadOptions& options) {
  return LoadVisionModel(std::move(directory), options, Build<ParseVilLsConfig>);
}

}  // namespace longview::models
