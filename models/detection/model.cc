#include "models/detection/model.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/cost/best_rates.h"
#include "models/detection/config.h"
#include "models/detection/head.h"
#include "models/detection/prepare.h"
#include "models/detection/run.h"
#include "models/detection/weights.h"
#include "models/parallel.h"
#include "models/pauses.h"
#include "models/status_macros.h"
#include "models/vision/backbone.h"
#include "models/vision/load.h"
#include "models/vision/model.h"
#include "models/vision/prepare.h"

namespace longview::models {
namespace {

// The backbones there are, by the "backbone" key, else by model_type.
absl::StatusOr<VisionBuilder> FindBackbone(const ModelDirectory& directory) {
  const std::array<VisionBuilder, 3> known = {VilBuilder(), VilLsBuilder(), CvtLsBuilder()};
  JsonReader reader(directory.config, directory.config_path);
  const std::string name = reader.StringOr("backbone", directory.common.model_type);
  if (!reader.status().ok()) return reader.status();
  std::string names;
  for (const VisionBuilder& builder : known) {
    if (builder.name == name) return builder;
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(builder.name));
  }
  return absl::InvalidArgumentError(absl::StrCat(directory.config_path, ": \"backbone\": \"",
                                                 name.substr(0, 64),
                                                 "\" is not served; served are ", names));
}

absl::StatusOr<DetectorConfig> ReadConfig(const ModelDirectory& directory,
                                          const VisionFacts& backbone) {
  JsonReader reader(directory.config, directory.config_path);
  if (!reader.Has("num_labels") && !reader.Has("id2label")) {
    reader.Refuse("num_labels", "the number of classes");
    return reader.status();
  }
  return ParseDetectorConfig(directory.config, directory.common, directory.serving, backbone,
                             directory.config_path);
}

// The pipeline with what detection needs of it: no cropping, sides that every map divides.
absl::StatusOr<std::optional<ImagePipeline>> ReadDetectorPipeline(const ModelDirectory& directory,
                                                                  int divisor) {
  absl::StatusOr<std::optional<ImagePipeline>> pipeline = ReadPipeline(directory);
  if (!pipeline.ok() || !pipeline->has_value()) return pipeline;
  const std::string file = directory.path + "/preprocessor_config.json: ";
  if ((*pipeline)->crop) {
    return absl::InvalidArgumentError(file + "do_center_crop: a detector sees whole pictures");
  }
  if ((*pipeline)->size_divisor % divisor != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, "size_divisor: ", (*pipeline)->size_divisor, " is not a multiple of ",
                     divisor, ", the stride of the coarsest map"));
  }
  return pipeline;
}

std::vector<int> ChannelsOf(const DetectorConfig& config, const std::vector<int>& by_stage) {
  std::vector<int> channels;
  for (const int stage : config.stages) channels.push_back(by_stage[stage]);
  return channels;
}

void AddTensors(const DetectorConfig& config, const VisionFacts& backbone, bool takes_images,
                ModelInfo& info) {
  if (takes_images) info.inputs.push_back({"image", TensorType::kBytes, {1}});
  info.inputs.push_back({"pixel_values", TensorType::kFp32, {1, 3, -1, -1}});
  info.outputs.push_back({"boxes", TensorType::kFp32, {-1, 4}});
  info.outputs.push_back({"scores", TensorType::kFp32, {-1}});
  info.outputs.push_back({"labels", TensorType::kInt64, {-1}});
  info.outputs.push_back({"label_names", TensorType::kBytes, {-1}});
  if (config.has_masks()) info.outputs.push_back({"masks", TensorType::kBytes, {-1}, false});
  AddFeatureMaps(backbone, false, info);
}

ModelInfo MakeInfo(const DetectorConfig& config, const VisionFacts& backbone, bool takes_images,
                   double parameters) {
  ModelInfo info;
  info.family = backbone.family;
  info.architecture = config.architecture;
  info.task = Task::kObjectDetection;
  info.tasks = {Task::kObjectDetection, Task::kImageFeatures};
  info.labels = config.labels;
  info.device = "cpu";
  info.parameters = parameters;
  AddTensors(config, backbone, takes_images, info);
  return info;
}

class DetectorModel final : public Model {
 public:
  DetectorModel(std::unique_ptr<ModelDirectory> directory, std::unique_ptr<VisionFamily> backbone,
                DetectorConfig config, DetectorWeights weights, Compute head_compute,
                int64_t max_pixels, std::optional<ImagePipeline> pipeline)
      : directory_(std::move(directory)),
        backbone_(std::move(backbone)),
        config_(std::move(config)),
        weights_(std::move(weights)) {
    const HeadContext context = {head_compute, &pool_};
    head_ = config_.kind == DetectorConfig::Kind::kRetinaNet
                ? MakeRetinaNetHead(config_, weights_, context)
                : MakeMaskRcnnHead(config_, weights_, context);
    front_ = {backbone_.get(), &config_, std::move(pipeline), config_.strides.back(), {max_pixels}};
    parts_ = {backbone_.get(), head_.get(), &config_,
              front_.pipeline ? &*front_.pipeline : nullptr};
    info_ = MakeInfo(config_, backbone_->facts(), front_.pipeline.has_value(),
                     backbone_->parameters() + weights_.parameters);
    info_.memory_bytes = backbone_->memory_bytes() + weights_.memory_bytes;
    info_.max_pixels = max_pixels;
  }

  const ModelInfo& info() const override { return info_; }
  double image_plan_bytes() const override { return static_cast<double>(backbone_->plan_bytes()); }
  // Records the backbone's device, and notes about it.
  void Describe(PlacedVision placed) {
    info_.device = std::move(placed.device);
    info_.dtype = std::move(placed.dtype);
    info_.notes = std::move(placed.notes);
  }

  absl::StatusOr<std::unique_ptr<Item>> Prepare(const Request& request) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<DetectionItem> item, PrepareDetection(front_, request));
    const EncoderWork work = DetectionWork(parts_, *item);
    Cost cost;
    cost.seconds = rates_.Seconds(work);
    cost.multiply_adds = work.MultiplyAdds();
    cost.workspace_bytes = DetectionBytes(parts_, *item);
    item->SetCost(cost);
    return std::unique_ptr<Item>(std::move(item));
  }

  absl::StatusOr<Cost> EstimateTokens(int) const override {
    return absl::InvalidArgumentError("num_tokens: an image model is asked by width and height");
  }

  std::unique_ptr<Run> Begin(std::span<const Item* const> items, RunTimes* times) const override {
    return std::make_unique<DetectionRun>(parts_, items, scratch_,
                                          info_.device == "cpu" ? &teams_ : nullptr, times);
  }

  absl::Status WarmUp() override;

 private:
  const std::unique_ptr<const ModelDirectory> directory_;
  const std::unique_ptr<const VisionFamily> backbone_;
  const DetectorConfig config_;
  const DetectorWeights weights_;
  const TorchParallelFor pool_;
  std::unique_ptr<DetectorHead> head_;
  DetectionFrontEnd front_;
  DetectorParts parts_;
  ModelInfo info_;
  EncoderRates rates_;
  BestRates best_;  // The best of all warm-ups.
  // Used by the executor's thread, as the runs are.
  mutable ScratchPool scratch_;
  mutable TeamChoice teams_;
};

// A picture of half the usual side has the rates of a whole one.
absl::Status DetectorModel::WarmUp() {
  if (!directory_->serving.warmup) return absl::OkStatus();
  constexpr int kSide = 384;
  const ImageSize usual = backbone_->typical_size();
  Request request;
  request.task = Task::kObjectDetection;
  PixelInput& pixels = request.pixel_values.emplace();
  pixels.height = std::min(kSide, usual.height);
  pixels.width = std::min(kSide, usual.width);
  pixels.values.assign(size_t{3} * pixels.height * pixels.width, 0.5f);
  ASSIGN_OR_RETURN(const std::unique_ptr<DetectionItem> item, PrepareDetection(front_, request));
  const EncoderWork work = DetectionWork(parts_, *item);
  const auto time = [&](RunTimes* times) -> absl::StatusOr<double> {
    const Item* const items[] = {item.get()};
    const double start = ComputeClock();
    DetectionRun run(parts_, items, scratch_, nullptr, times);
    RunToEnd(run);
    RETURN_IF_ERROR(run.Take(0).status());
    return ComputeClock() - start;
  };
  const absl::StatusOr<EncoderRates> rates = Calibrate({work, time}, nullptr, best_);
  if (rates.ok()) rates_ = *rates;
  return rates.status();
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeDetector(const ModelDirectory& directory) {
  ASSIGN_OR_RETURN(const VisionBuilder builder, FindBackbone(directory));
  const BackbonePlace place = DetectorBackbonePlace();
  ASSIGN_OR_RETURN(const BuiltFacts backbone, builder.describe(directory, &place));
  ASSIGN_OR_RETURN(const DetectorConfig config, ReadConfig(directory, backbone.facts));
  ASSIGN_OR_RETURN(const auto pipeline, ReadDetectorPipeline(directory, config.strides.back()));
  ASSIGN_OR_RETURN(const double parameters,
                   CheckDetectorWeights(config, ChannelsOf(config, backbone.facts.channels),
                                        directory.checkpoint, directory.path));
  return MakeInfo(config, backbone.facts, pipeline.has_value(), backbone.parameters + parameters);
}

absl::StatusOr<std::unique_ptr<Model>> LoadDetectorAt(std::unique_ptr<Device> device,
                                                      ModelDirectory directory,
                                                      const LoadOptions& options,
                                                      std::vector<std::string> notes) {
  ASSIGN_OR_RETURN(const VisionBuilder builder, FindBackbone(directory));
  auto kept = std::make_unique<ModelDirectory>(std::move(directory));
  const BackbonePlace place = DetectorBackbonePlace();
  ASSIGN_OR_RETURN(PlacedVision backbone, BuildPlaced(std::move(device), *kept, options, builder,
                                                      &place, std::move(notes)));
  const VisionFacts& facts = backbone.family->facts();
  // Heads behind a device compute in fp32, as which maps come.
  const Compute head_compute =
      backbone.device == "cpu" ? backbone.family->compute() : Compute::kFp32;
  ASSIGN_OR_RETURN(DetectorConfig config, ReadConfig(*kept, facts));
  ASSIGN_OR_RETURN(auto pipeline, ReadDetectorPipeline(*kept, config.strides.back()));
  ASSIGN_OR_RETURN(DetectorWeights weights,
                   LoadDetectorWeights(config, ChannelsOf(config, facts.channels), kept->checkpoint,
                                       kept->path, head_compute));
  auto model = std::make_unique<DetectorModel>(std::move(kept), std::move(backbone.family),
                                               std::move(config), std::move(weights), head_compute,
                                               options.max_image_pixels, std::move(pipeline));
  model->Describe(std::move(backbone));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace longview::models
