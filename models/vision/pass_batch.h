// Passes as batches: on the host, and as parts of a batch on a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/dense/scratch_keeper.h"
#include "models/device/device_run.h"
#include "models/layers/compute_context.h"
#include "models/ops/device_map_ops.h"
#include "models/ops/device_ops.h"
#include "models/ops/host_map_ops.h"
#include "models/ops/host_ops.h"
#include "models/vision/family.h"
#include "models/vision/pass.h"

namespace longview::models {

// The need of a pass on a backend, and the work in it.
struct PassNeed {
  OpsNeed ops;
  size_t maps = 0;  // Scratch of operations on maps, which shares that of the others.
  EncoderWork work;

  size_t scratch() const { return std::max(ops.scratch, maps); }
  size_t memory() const { return ops.buffers + scratch(); }
};
PassNeed CountOnHost(VisionPass& pass, const ComputeContext& context);
PassNeed CountOnDevice(VisionPass& pass, Compute compute);

// The results of pictures that went through a pass together, taken apart.
class PassResults {
 public:
  explicit PassResults(size_t pictures) : features(pictures), maps(pictures) {}

  // Those of the pictures `items`, which a pass had in that order. `shapes`: of all maps of a
  // picture by stage, without values.
  template <typename Shapes>
  void Keep(std::span<const int> items, std::span<const VisionPicture> pictures,
            int64_t feature_floats, const float* results, Shapes&& shapes) {
    const auto take = [&](int64_t count) {
      std::vector<float> values(results, results + count);
      results += count;
      return values;
    };
    for (const int item : items) features[item] = take(feature_floats);
    for (const int item : items) {
      const std::vector<FeatureMap> all = shapes(pictures[item].size);
      for (const int stage : pictures[item].stages) {
        FeatureMap map = all[stage];
        map.values = take(int64_t{map.channels} * map.size.height * map.size.width);
        maps[item].push_back(std::move(map));
      }
    }
  }

  std::vector<std::vector<float>> features;   // By picture.
  std::vector<std::vector<FeatureMap>> maps;  // The same.
};

std::vector<VisionPicture> PicturesOf(std::span<const VisionInput> inputs);

// A batch on the host, see VisionBatch. Pictures dropped before the first block never enter; later
// ones stay, as their rows lie between those of others. `Family` brings, of its context,
//
//   MakePass(context, pictures, measure)   `measure`: only sizes are wanted
//   MapsOf(config, picture)                a picture's maps by stage, without values
//
// both static. REQUIRES: the context and scratch outlive the batch.
template <class Family>
class HostPassBatch : public VisionBatch {
 public:
  using Context = typename Family::Context;

  HostPassBatch(const Context& context, std::span<const VisionInput> inputs, ScratchKeeper& scratch,
                EncoderTimes* times)
      : context_(context),
        scratch_(scratch),
        times_(times),
        pictures_(PicturesOf(inputs)),
        dropped_(inputs.size()),
        results_(inputs.size()) {}

  // The need of a batch of pictures of these sizes beside its results. Thread-safe.
  static PassNeed NeedOf(const Context& context, std::span<const ImageSize> sizes) {
    std::vector<VisionPicture> pictures;
    for (const ImageSize size : sizes) pictures.push_back({size, nullptr, {}});
    return CountOnHost(*Family::MakePass(context, pictures, true), context);
  }
  static size_t ScratchBytes(const Context& context, std::span<const ImageSize> sizes) {
    return NeedOf(context, sizes).memory();
  }

  bool Advance() override {
    if (!started_ && !Start()) return false;
    if (pass_ == nullptr || layer_ == pass_->layers()) return false;
    pass_->Layer(*ops_, *maps_, layer_);
    if (++layer_ < pass_->layers()) return true;
    results_.Keep(members_, pictures_, pass_->feature_floats(), floats_.data(),
                  [&](ImageSize size) { return Family::MapsOf(*context_.config, size); });
    floats_ = {};
    return false;
  }
  void Drop(int i) override { dropped_[i] = true; }
  std::vector<float> Embedding(int i) const override { return results_.features[i]; }
  std::vector<float> Logits(int i) const override {
    const DenseLayer& head = *context_.weights->head;
    std::vector<float> logits(static_cast<size_t>(head.out()));
    const float* const rows[] = {results_.features[i].data()};
    ApplyToRows(head, rows, Activation::kNone, *context_.pool, logits.data());
    return logits;
  }
  std::vector<FeatureMap> TakeMaps(int i) override { return std::move(results_.maps[i]); }

 private:
  // Returns whether a picture takes part.
  bool Start() {
    started_ = true;
    std::vector<VisionPicture> some;
    for (size_t i = 0; i < pictures_.size(); ++i) {
      if (dropped_[i]) continue;
      members_.push_back(static_cast<int>(i));
      some.push_back(pictures_[i]);
    }
    if (members_.empty()) return false;
    pass_ = Family::MakePass(context_, some, false);
    const PassNeed need = CountOnHost(*pass_, context_);
    loan_.emplace(scratch_, need.memory());
    ops_.emplace(context_, need.ops, loan_->data(), times_);
    maps_.emplace(context_, loan_->data() + need.ops.buffers, times_);
    floats_.resize(static_cast<size_t>(pass_->result_floats()));
    pass_->Stage(*ops_, *maps_);
    pass_->Take(*ops_, *maps_);
    pass_->set_results(floats_.data());
    return true;
  }

  const Context& context_;
  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  const std::vector<VisionPicture> pictures_;
  std::vector<bool> dropped_;
  PassResults results_;
  std::vector<int> members_;  // The pictures that take part.
  std::unique_ptr<VisionPass> pass_;
  std::optional<ScratchLoan> loan_;
  std::optional<HostOps> ops_;
  std::optional<HostMapOps> maps_;
  std::vector<float> floats_;  // Results of all members.
  bool started_ = false;
  int layer_ = 0;
};

// A pass as a part of a batch on a device.
class VisionPassPart final : public DevicePart {
 public:
  // REQUIRES: the device outlives the part.
  VisionPassPart(std::unique_ptr<VisionPass> pass, const Device& device, Compute compute);

  DeviceRunBytes bytes() const override { return bytes_; }
  void Stage(StagedLists& lists) override;
  void Carve(Carver& carver) override;
  int layers() const override { return pass_->layers(); }
  void Embed() override {}  // Tokens are made by the first layer of every stage.
  void RunLayer(int layer, const DeviceTimer& timer) override;
  void AddResults(DeviceResults& results) const override;

 private:
  const std::unique_ptr<VisionPass> pass_;
  DeviceOps ops_;
  DeviceMapOps maps_;
  PassNeed need_;
  DeviceRunBytes bytes_;
  float* results_ = nullptr;
};

// The bytes of a part, without a device.
DeviceRunBytes PartBytes(VisionPass& pass, Compute compute);

}  // namespace longview::models
