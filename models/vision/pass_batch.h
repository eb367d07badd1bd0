// Passes as batches: on the host, and as parts of a batch on a device.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/device/device_run.h"
#include "models/forward/forward_part.h"
#include "models/forward/host_runner.h"
#include "models/vision/family.h"
#include "models/vision/staged_pass.h"

namespace longview::models {

// The need of a picture that is alone.
struct PictureNeed {
  EncoderWork work;
  size_t workspace = 0;  // Bytes of the host's memory beside results.
  DeviceRunBytes part;   // The device's bytes.
};
inline size_t BytesOf(const PictureNeed&) { return 0; }

std::vector<VisionPicture> PicturesOf(std::span<const VisionInput> inputs);

// A batch of pictures that go through passes of a family in stages (staged_family.h), and its
// results.
template <class Family>
class PassBatch : public VisionBatch {
 public:
  using Context = typename Family::Context;

  std::vector<float> Embedding(int i) const override { return features_[i]; }
  // The head is on the host.
  std::vector<float> Logits(int i) const override {
    const DenseLayer& head = *context_.weights->head;
    std::vector<float> logits(static_cast<size_t>(head.out()));
    const float* const rows[] = {features_[i].data()};
    ApplyToRows(head, rows, Activation::kNone, *context_.pool, logits.data());
    return logits;
  }
  std::vector<FeatureMap> TakeMaps(int i) override { return std::move(maps_[i]); }

 protected:
  // REQUIRES: the context outlives the batch, too.
  PassBatch(const Context& context, std::span<const VisionInput> inputs)
      : context_(context),
        pictures_(PicturesOf(inputs)),
        features_(inputs.size()),
        maps_(inputs.size()) {}

  std::unique_ptr<Forward> MakePass(std::span<const int> items, bool measure) const {
    std::vector<VisionPicture> some;
    for (const int item : items) some.push_back(pictures_[item]);
    return Family::MakePass(context_, some, measure);
  }
  // The results of a pass that had the pictures `items` in that order.
  void Keep(std::span<const int> items, const float* results) {
    const auto take = [&](int64_t count) {
      std::vector<float> values(results, results + count);
      results += count;
      return values;
    };
    const auto& config = *context_.config;
    for (const int item : items) {
      features_[item] = take(config.backbone ? 0 : config.stages.back().width);
    }
    for (const int item : items) {
      const std::vector<FeatureMap> all = Family::MapsOf(config, pictures_[item].size);
      for (const int stage : pictures_[item].stages) {
        FeatureMap map = all[stage];
        map.values = take(int64_t{map.channels} * map.size.height * map.size.width);
        maps_[item].push_back(std::move(map));
      }
    }
  }

  const Context& context_;
  const std::vector<VisionPicture> pictures_;

 private:
  std::vector<std::vector<float>> features_;   // By picture.
  std::vector<std::vector<FeatureMap>> maps_;  // By picture.
};

// On the host, see VisionBatch. Pictures dropped before the first block never enter; later ones
// stay, as their rows lie between those of others.
template <class Family>
class HostPassBatch final : public PassBatch<Family> {
 public:
  using Context = typename Family::Context;

  // REQUIRES: scratch outlives the batch.
  HostPassBatch(const Context& context, std::span<const VisionInput> inputs, ScratchPool& scratch,
                RunTimes* times)
      : PassBatch<Family>(context, inputs),
        scratch_(scratch),
        times_(times),
        dropped_(inputs.size()) {}

  bool Advance() override {
    if (!started_ && !Start()) return false;
    if (!runner_) return false;
    if (runner_->Advance()) return true;
    this->Keep(members_, pass_->Results()[0].floats());
    runner_.reset();
    return false;
  }
  void Drop(int i) override { dropped_[i] = true; }

 private:
  // Returns whether a picture takes part.
  bool Start() {
    started_ = true;
    for (size_t i = 0; i < dropped_.size(); ++i) {
      if (!dropped_[i]) members_.push_back(static_cast<int>(i));
    }
    if (members_.empty()) return false;
    pass_ = this->MakePass(members_, false);
    runner_.emplace(*pass_, CountOnHost(*pass_, this->context_).need, this->context_, scratch_,
                    times_);
    runner_->Begin();
    return true;
  }

  ScratchPool& scratch_;
  RunTimes* const times_;
  std::vector<bool> dropped_;
  std::vector<int> members_;  // The pictures that take part.
  std::unique_ptr<Forward> pass_;
  std::optional<HostRunner> runner_;  // While blocks are left.
  bool started_ = false;
};

// A batch whose stages are on a device, see VisionBatch. Throws DeviceError, too.
template <class Family>
class DevicePassBatch final : public PassBatch<Family>, private DeviceItems {
 public:
  // REQUIRES: everything borrowed outlives the batch.
  DevicePassBatch(const typename Family::Context& context, const Device& device, Compute compute,
                  DeviceWorkspace& workspace, std::span<const VisionInput> inputs, RunTimes* times)
      : PassBatch<Family>(context, inputs),
        device_(device),
        compute_(compute),
        run_(device, workspace, *this, times) {}

  bool Advance() override { return run_.Advance(); }
  void Drop(int i) override { run_.Drop(i); }

 private:
  int size() const override { return static_cast<int>(this->pictures_.size()); }
  std::string NameOf(int item) const override {
    const ImageSize size = this->pictures_[item].size;
    return absl::StrCat("a picture of ", size.height, " x ", size.width);
  }
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override {
    return std::make_unique<ForwardPart>(this->MakePass(items, true), device_, compute_);
  }
  void Keep(std::span<const int> items, const std::byte* results) override {
    PassBatch<Family>::Keep(items, reinterpret_cast<const float*>(results));
  }

  const Device& device_;
  const Compute compute_;
  DeviceRun run_;
};

}  // namespace longview::models
