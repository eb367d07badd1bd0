// The frame of a family of image models in stages: what a VisionBuilder gives, on the host and on
// devices. A family brings static members of a Forward:
//
//   Config, Weights    Context derives from VisionContext of them
//   Parse(json, common, origin, backbone)
//   Load(config, place, checkpoint, origin, format, store)
//                      `place`: of a backbone's tensors, else null; `format` unset: names and
//                      shapes alone; `store`: of the device that has the stages, null on the host
//   CheckSize(config, size)
//   ObstacleOf(config)                     what devices cannot run
//   MakePass(context, pictures, measure)   `measure`: only sizes are wanted
//   MapsOf(config, picture)                a picture's maps by stage, without values
//
// Config has `family`, `architecture`, `image`, `stages` with a `width`, `stride(stage)`, `labels`,
// `problem_type` and `backbone`; Weights has `head`, `parameters` and `memory_bytes`.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/dense/weight_format.h"
#include "models/device/placement.h"
#include "models/ops/weight_placer.h"
#include "models/parallel.h"
#include "models/status_macros.h"
#include "models/vision/backbone.h"
#include "models/vision/device_room.h"
#include "models/vision/pass_batch.h"

namespace longview::models {

template <class Config>
VisionFacts StagedFacts(const Config& config) {
  VisionFacts facts;
  facts.family = config.family;
  facts.architecture = config.architecture;
  facts.width = config.stages.back().width;
  for (size_t s = 0; s < config.stages.size(); ++s) {
    facts.strides.push_back(config.stride(s));
    facts.channels.push_back(config.stages[s].width);
  }
  facts.labels = config.labels;
  facts.problem_type = config.problem_type;
  return facts;
}

template <class Forward>
class StagedFamily final : public VisionFamily {
 public:
  using Config = typename Forward::Config;
  using Weights = typename Forward::Weights;

  static VisionBuilder Builder(std::string_view name) { return {name, Describe, Obstacle, Build}; }
  // The functions of VisionBuilder. Errors are those of parsing and loading.
  static absl::StatusOr<BuiltFacts> Describe(const ModelDirectory& directory,
                                             const BackbonePlace* place);
  static absl::StatusOr<DeviceObstacle> Obstacle(const ModelDirectory& directory,
                                                 const BackbonePlace* place) {
    ASSIGN_OR_RETURN(const Config config, Read(directory, place));
    return Forward::ObstacleOf(config);
  }
  static absl::StatusOr<std::unique_ptr<VisionFamily>> Build(const ModelDirectory& directory,
                                                             const BackbonePlace* place,
                                                             WeightFormat format,
                                                             std::unique_ptr<Device> device,
                                                             const LoadOptions& options);
  // The most that one picture of this size needs on a device, with weights that may have sizes
  // alone.
  static DeviceRunBytes DeviceBytes(const Config& config, const Weights& weights, Compute compute,
                                    ImageSize size);

  // `placement` null: on the host. Else it has the stages, and the weights' head is for the host,
  // in fp32. Throws DeviceError.
  struct Placement {
    Placement(DevicePlacement given, std::unique_ptr<DeviceBlock> weights)
        : at(std::move(given)), weights(std::move(weights)), workspace(*at.device, at.room) {}

    const DevicePlacement at;
    const std::unique_ptr<DeviceBlock> weights;
    DeviceWorkspace workspace;  // Used by the executor's thread, as batches are.
  };
  // At most `plan_bytes` are kept of what follows from sizes.
  StagedFamily(Config config, Weights weights, Compute compute,
               std::unique_ptr<Placement> placement, size_t plan_bytes)
      : shapes_(plan_bytes),
        config_(std::move(config)),
        weights_(std::move(weights)),
        facts_(StagedFacts(config_)),
        context_(config_, weights_, compute, pool_, shapes_),
        placement_(std::move(placement)) {
    if (placement_ != nullptr) context_.PlanForDevice();
  }

  const VisionFacts& facts() const override { return facts_; }
  Compute compute() const override {
    return placement_ ? placement_->at.compute : context_.compute;
  }
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override {
    if (placement_ == nullptr) return weights_.memory_bytes;
    return static_cast<double>(placement_->at.weight_bytes + placement_->workspace.room().device());
  }
  size_t plan_bytes() const override { return shapes_.bytes(); }
  ImageSize typical_size() const override { return config_.image; }

  absl::Status CheckSize(ImageSize size) const override {
    absl::Status status = Forward::CheckSize(config_, size);
    if (!status.ok() || placement_ == nullptr) return status;
    return CheckRoom(size, NeedOf(size)->part, *placement_->at.device,
                     placement_->workspace.room());
  }
  size_t WorkspaceBytes(ImageSize size) const override { return NeedOf(size)->workspace; }
  EncoderWork WorkOf(ImageSize size) const override {
    EncoderWork work = NeedOf(size)->work;
    work.linear += static_cast<double>(config_.labels.size()) * facts_.width;
    return work;
  }

  std::unique_ptr<VisionBatch> Begin(std::span<const VisionInput> inputs, ScratchPool& scratch,
                                     RunTimes* times) const override {
    if (placement_ == nullptr) {
      return std::make_unique<HostPassBatch<Forward>>(context_, inputs, scratch, times);
    }
    return std::make_unique<DevicePassBatch<Forward>>(context_, *placement_->at.device,
                                                      placement_->at.compute, placement_->workspace,
                                                      inputs, times);
  }

 private:
  static auto Read(const ModelDirectory& directory, const BackbonePlace* place) {
    return Forward::Parse(directory.config, directory.common, directory.config_path,
                          place != nullptr);
  }

  // Kept by size.
  std::shared_ptr<const PictureNeed> NeedOf(ImageSize size) const {
    return shapes_.template Of<PictureNeed>(
        ShapeKey(ShapeKind::kPictureNeed, 0, {&size, 1}), [&]() -> PictureNeed {
          const VisionPicture picture = WholePicture(size, facts_.strides.size());
          const auto pass = Forward::MakePass(context_, {&picture, 1}, /*measure=*/true);
          const ForwardCount count = placement_ ? CountOnDevice(*pass, placement_->at.compute)
                                                : CountOnHost(*pass, context_);
          const DeviceRunBytes part = PartBytes(count.need, *pass);
          // A device's memory was taken when the model loaded.
          const size_t host = count.need.memory() + count.need.transient;
          return {count.work, placement_ ? part.results : host, part};
        });
  }

  mutable ShapeCache shapes_;  // For batches and costs.
  const Config config_;
  const Weights weights_;
  const VisionFacts facts_;
  const TorchParallelFor pool_;
  typename Forward::Context context_;
  const std::unique_ptr<Placement> placement_;
};

template <class Forward>
absl::StatusOr<BuiltFacts> StagedFamily<Forward>::Describe(const ModelDirectory& directory,
                                                           const BackbonePlace* place) {
  ASSIGN_OR_RETURN(const Config config, Read(directory, place));
  ASSIGN_OR_RETURN(const Weights weights, Forward::Load(config, place, directory.checkpoint,
                                                        directory.path, std::nullopt, nullptr));
  return BuiltFacts{StagedFacts(config), weights.parameters};
}

template <class Forward>
DeviceRunBytes StagedFamily<Forward>::DeviceBytes(const Config& config, const Weights& weights,
                                                  Compute compute, ImageSize size) {
  const TorchParallelFor pool;
  ShapeCache shapes;
  typename Forward::Context context(config, weights, Compute::kFp32, pool, shapes);
  context.PlanForDevice();
  const VisionPicture picture = WholePicture(size, config.stages.size());
  const auto pass = Forward::MakePass(context, {&picture, 1}, true);
  return PartBytes(CountOnDevice(*pass, compute).need, *pass);
}

template <class Forward>
absl::StatusOr<std::unique_ptr<VisionFamily>> StagedFamily<Forward>::Build(
    const ModelDirectory& directory, const BackbonePlace* place, WeightFormat format,
    std::unique_ptr<Device> device, const LoadOptions& options) {
  const auto plan_bytes = static_cast<size_t>(options.image_plan_bytes);
  ASSIGN_OR_RETURN(Config config, Read(directory, place));
  if (device == nullptr) {
    ASSIGN_OR_RETURN(Weights weights, Forward::Load(config, place, directory.checkpoint,
                                                    directory.path, format, nullptr));
    return std::make_unique<StagedFamily>(std::move(config), std::move(weights), format.compute,
                                          nullptr, plan_bytes);
  }
  const Compute compute = format.compute;
  DeviceStore store(compute);
  const auto load = [&](std::optional<WeightFormat> type) {
    return Forward::Load(config, place, directory.checkpoint, directory.path, type, &store);
  };
  ASSIGN_OR_RETURN(const Weights sizes, load(std::nullopt));
  const size_t weight_bytes = store.bytes();
  const auto of = [&](ImageSize size) -> std::optional<DeviceRunBytes> {
    if (!Forward::CheckSize(config, size).ok()) return std::nullopt;
    return DeviceBytes(config, sizes, compute, size);
  };
  ASSIGN_OR_RETURN(const DeviceRunBytes room,
                   RoomForPictures(directory.path, *device,
                                   {weight_bytes, config.image, options.max_image_pixels, of}));
  store.Allocate(*device);
  ASSIGN_OR_RETURN(Weights weights, load(Compute::kFp32));
  auto placement = std::make_unique<Placement>(
      DevicePlacement{std::move(device), compute, weight_bytes, room}, store.TakeBlock());
  return std::make_unique<StagedFamily>(std::move(config), std::move(weights), Compute::kFp32,
                                        std::move(placement), plan_bytes);
}

}  // namespace longview::models
