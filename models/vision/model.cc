#include "models/vision/model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/cost/best_rates.h"
#include "models/cost/stopwatch.h"
#include "models/pauses.h"
#include "models/status_macros.h"
#include "models/vision/prepare.h"
#include "models/vision/run.h"

namespace longview::models {

absl::StatusOr<std::optional<ImagePipeline>> ReadPipeline(const ModelDirectory& directory) {
  const std::string path = directory.path + "/preprocessor_config.json";
  const absl::StatusOr<nlohmann::json> config = ReadJsonFile(path);
  if (absl::IsNotFound(config.status())) return std::nullopt;
  if (!config.ok()) return config.status();
  ASSIGN_OR_RETURN(ImagePipeline pipeline, ReadImagePipeline(*config, path));
  return pipeline;
}

namespace {

void AddTensors(const VisionFacts& facts, bool takes_images, ModelInfo& info) {
  if (takes_images) info.inputs.push_back({"image", TensorType::kBytes, {-1}});
  info.inputs.push_back({"pixel_values", TensorType::kFp32, {-1, 3, -1, -1}});
  const auto labels = static_cast<int64_t>(facts.labels.size());
  const auto add = [&](std::string name, TensorType type, std::vector<int64_t> shape,
                       bool by_default) {
    info.outputs.push_back({std::move(name), type, std::move(shape), by_default});
  };
  if (labels > 0) {
    add("logits", TensorType::kFp32, {-1, labels}, true);
    if (facts.problem_type != ProblemType::kRegression) {
      add("probabilities", TensorType::kFp32, {-1, labels}, true);
      add("label", TensorType::kBytes, {-1}, true);
    }
  }
  add("embedding", TensorType::kFp32, {-1, facts.width}, false);
  AddFeatureMaps(facts, labels == 0, info);
}

class VisionModel final : public Model {
 public:
  VisionModel(std::unique_ptr<ModelDirectory> directory, std::unique_ptr<VisionFamily> family,
              ModelInfo info, std::optional<ImagePipeline> pipeline, int64_t max_pixels)
      : directory_(std::move(directory)), family_(std::move(family)), info_(std::move(info)) {
    front_ = {family_.get(), std::move(pipeline), {max_pixels}};
    info_.memory_bytes = family_->memory_bytes();
    info_.max_pixels = max_pixels;
  }

  const ModelInfo& info() const override { return info_; }

  absl::StatusOr<std::unique_ptr<Item>> Prepare(const Request& request) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ImageItem> item, PrepareImageItem(front_, request));
    item->SetCost(CostOf(item->pixels.size));
    return std::unique_ptr<Item>(std::move(item));
  }

  absl::StatusOr<Cost> EstimateTokens(int) const override {
    return absl::InvalidArgumentError("num_tokens: an image model is asked by width and height");
  }

  std::unique_ptr<Run> Begin(std::span<const Item* const> items, RunTimes* times) const override {
    return std::make_unique<VisionRun>(*family_, items, scratch_,
                                       info_.device == "cpu" ? &teams_ : nullptr, times);
  }

  absl::Status WarmUp() override;

  double image_plan_bytes() const override { return static_cast<double>(family_->plan_bytes()); }

 private:
  Cost CostOf(ImageSize size) const {
    const EncoderWork work = family_->WorkOf(size);
    Cost cost;
    cost.seconds = rates_.Seconds(work);
    cost.multiply_adds = work.MultiplyAdds();
    cost.workspace_bytes = static_cast<double>(family_->WorkspaceBytes(size));
    return cost;
  }

  const std::unique_ptr<const ModelDirectory> directory_;
  const std::unique_ptr<const VisionFamily> family_;
  ModelInfo info_;
  VisionFrontEnd front_;
  EncoderRates rates_;
  BestRates best_;  // The best of all warm-ups.
  // Used by the executor's thread, as the runs are.
  mutable ScratchPool scratch_;
  mutable TeamChoice teams_;
};

absl::Status VisionModel::WarmUp() {
  if (!directory_->serving.warmup) return absl::OkStatus();
  const ImageSize size = family_->typical_size();
  ImageItem item;
  item.task = Task::kImageFeatures;
  item.pixels = {size, std::vector<float>(size_t{3} * size.height * size.width, 0.5f)};
  const auto time = [&](RunTimes* times) -> absl::StatusOr<double> {
    const Item* const items[] = {&item};
    const double start = ComputeClock();
    VisionRun run(*family_, items, scratch_, nullptr, times);
    RunToEnd(run);
    RETURN_IF_ERROR(run.Take(0).status());
    return ComputeClock() - start;
  };
  const absl::StatusOr<EncoderRates> rates =
      Calibrate({family_->WorkOf(size), time}, nullptr, best_);
  if (rates.ok()) rates_ = *rates;
  return rates.status();
}

}  // namespace

absl::StatusOr<ModelInfo> VisionInfo(const ModelDirectory& directory, const VisionFacts& facts,
                                     double parameters) {
  ASSIGN_OR_RETURN(const auto pipeline, ReadPipeline(directory));
  ModelInfo info;
  info.family = facts.family;
  info.architecture = facts.architecture;
  if (!facts.labels.empty()) info.tasks.push_back(Task::kImageClassification);
  info.tasks.push_back(Task::kImageFeatures);
  info.task = info.tasks.front();
  info.labels = facts.labels;
  info.problem_type = facts.problem_type;
  info.embedding_width = facts.width;
  info.device = "cpu";
  info.parameters = parameters;
  AddTensors(facts, pipeline.has_value(), info);
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> MakeVisionModel(std::unique_ptr<ModelDirectory> directory,
                                                       const LoadOptions& options,
                                                       PlacedVision placed) {
  ASSIGN_OR_RETURN(auto pipeline, ReadPipeline(*directory));
  ASSIGN_OR_RETURN(ModelInfo info,
                   VisionInfo(*directory, placed.family->facts(), placed.family->parameters()));
  info.device = std::move(placed.device);
  info.dtype = std::move(placed.dtype);
  info.notes = std::move(placed.notes);
  return std::make_unique<VisionModel>(std::move(directory), std::move(placed.family),
                                       std::move(info), std::move(pipeline),
                                       options.max_image_pixels);
}

}  // namespace longview::models
