#include "models/longformer/model.h"

#include <string>
#include <utility>
#include <vector>

#include "models/encoder/model.h"
#include "models/encoder/weighted_family.h"
#include "models/longformer/cost.h"
#include "models/longformer/device_model.h"
#include "models/longformer/encoder.h"
#include "models/longformer/heads.h"
#include "models/longformer/rules.h"

namespace longview::models {
namespace {

class Longformer final : public WeightedFamily<EncoderRun, ParseLongformerConfig,
                                               LoadLongformerWeights, LongformerFacts> {
 public:
  Longformer(LongformerConfig config, LongformerWeights weights, Compute compute)
      : WeightedFamily(std::move(config), std::move(weights), compute) {
    facts_.has_pooler = weights_.pooler.has_value();
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override {
    return PlaceTokens(config_, field, sequence);
  }
  absl::Status MarkDefaultGlobals(const std::string& field, Task task,
                                  EncoderSequence& sequence) const override {
    return MarkGlobals(config_, field, task, sequence);
  }

  size_t WorkspaceBytes(Sequences sequences) const override;
  EncoderWork WorkOf(const EncoderSequence& sequence) const override {
    return models::WorkOf(config_, sequence);
  }
  int64_t LogitFloats(const EncoderItem& item) const override {
    return models::LogitFloats(config_, item);
  }
};

size_t Longformer::WorkspaceBytes(Sequences sequences) const {
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const int64_t widest = std::max(3 * config_.width, config_.intermediate) + config_.width;
  return ScratchBytes(sequences) +
         static_cast<size_t>(kPanelRows * widest * ElementBytes(context_.compute));
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLongformer(const ModelDirectory& directory) {
  return DescribeFamily<Longformer>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadLongformer(ModelDirectory directory,
                                                      const LoadOptions& options) {
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  if (*device != nullptr) {
    return LoadDeviceLongformer(std::move(directory), options, *std::move(device));
  }
  absl::StatusOr<ComputeChoice> choice = ChooseCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  choice->notes.insert(choice->notes.end(), notes.begin(), notes.end());
  return LoadEncoderOn("cpu", std::move(directory), *std::move(choice), BuildFamily<Longformer>);
}

}  // namespace longview::models
