#include "models/longformer/device_model.h"

#include <utility>

#include "models/device/device_admission.h"
#include "models/device/device_compute.h"
#include "models/encoder/model.h"
#include "models/encoder/weighted_family.h"
#include "models/longformer/cost.h"
#include "models/longformer/device_encoder.h"
#include "models/longformer/heads.h"
#include "models/longformer/rules.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// Documents of the longest kind that the workspace holds at once, where there is memory: more work
// on the device at a time than that gains nothing.
constexpr int kMostDocuments = 8;

class DeviceLongformer final : public EncoderFamily {
 public:
  DeviceLongformer(LongformerConfig config, DeviceLongformerWeights weights, Compute compute,
                   std::unique_ptr<Device> device, const DeviceRunBytes& room)
      : config_(std::move(config)),
        facts_(LongformerFacts(config_)),
        device_(std::move(device)),
        weights_(std::move(weights)),
        workspace_(*device_, room) {
    facts_.has_pooler = weights_.host.pooler.has_value();
    context_ = {&config_, &weights_, compute, device_.get()};
    host_.config = &config_;
    host_.weights = &weights_.host;
    host_.pool = &pool_;
  }

  const EncoderFacts& facts() const override { return facts_; }
  Compute compute() const override { return context_.compute; }
  double parameters() const override { return weights_.host.parameters; }
  double memory_bytes() const override {
    return static_cast<double>(weights_.block->bytes() + workspace_.room().device());
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override {
    return PlaceTokens(config_, field, sequence);
  }
  absl::Status MarkDefaultGlobals(const std::string& field, Task task,
                                  EncoderSequence& sequence) const override {
    return MarkGlobals(config_, field, task, sequence);
  }

  std::unique_ptr<EncoderBatch> Begin(Sequences sequences, ScratchKeeper&,
                                      EncoderTimes* times) const override {
    return std::make_unique<DeviceEncoderRun>(context_, host_, workspace_, sequences, times);
  }

  // Of the host: the rows that come back. The device's memory was taken when the model loaded.
  size_t WorkspaceBytes(Sequences sequences) const override {
    size_t rows = 0;
    for (const EncoderSequence* sequence : sequences) rows += sequence->wanted.size();
    return rows * static_cast<size_t>(config_.width) * sizeof(float);
  }

  EncoderWork WorkOf(const EncoderSequence& sequence) const override {
    return models::WorkOf(config_, sequence);
  }
  int64_t LogitFloats(const EncoderItem& item) const override {
    return models::LogitFloats(config_, item);
  }

 private:
  const LongformerConfig config_;
  EncoderFacts facts_;
  const std::unique_ptr<const Device> device_;
  const DeviceLongformerWeights weights_;
  mutable DeviceWorkspace workspace_;  // Of the executor's thread, as runs are.
  const TorchParallelFor pool_;
  DeviceEncoderContext context_;
  EncoderContext host_;  // For heads.
};

absl::StatusOr<std::unique_ptr<EncoderFamily>> Build(const ModelDirectory& directory,
                                                     Compute compute,
                                                     std::unique_ptr<Device> device) {
  absl::StatusOr<LongformerConfig> config = ReadTextConfig<ParseLongformerConfig>(directory);
  if (!config.ok()) return config.status();
  if (config->width % 2 != 0) {
    return absl::InvalidArgumentError(directory.config_path +
                                      ": hidden_size must be even to run on " + device->name());
  }
  const int tokens = MostTokens(directory, config->max_tokens());
  const DeviceRunBytes longest = LongestDocumentBytes(*config, compute, tokens);
  const DeviceNeed need = {static_cast<double>(DeviceWeightBytes(*config, compute)),
                           static_cast<double>(longest.device()), tokens};
  absl::StatusOr<int> documents =
      DocumentsAtOnce(directory.path, device->name(), need, device->FreeBytes(), kMostDocuments);
  if (!documents.ok()) return documents.status();
  const Device::Turn turn(*device);
  absl::StatusOr<DeviceLongformerWeights> weights =
      LoadDeviceLongformerWeights(*config, directory.checkpoint, directory.path, compute, *device);
  if (!weights.ok()) return weights.status();
  return std::make_unique<DeviceLongformer>(*std::move(config), *std::move(weights), compute,
                                            std::move(device),
                                            longest.Times(static_cast<size_t>(*documents)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadDeviceLongformer(ModelDirectory directory,
                                                            const LoadOptions& options,
                                                            std::unique_ptr<Device> device) {
  absl::StatusOr<ComputeChoice> choice = ChooseDeviceCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  const std::string name = device->name();
  return LoadEncoderOn(name, std::move(directory), *std::move(choice),
                       [&](const ModelDirectory& kept,
                           Compute compute) -> absl::StatusOr<std::unique_ptr<EncoderFamily>> {
                         absl::StatusOr<std::unique_ptr<EncoderFamily>> family =
                             absl::InternalError("not built");
                         absl::Status guarded = GuardDevice(
                             name, [&] { family = Build(kept, compute, std::move(device)); });
                         if (!guarded.ok()) return guarded;
                         return family;
                       });
}

}  // namespace longview::models
