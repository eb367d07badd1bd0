// A family of image models on a device: Host is the family's class of weighted_family.h, whose
// weights hold the stages on the device and the head for the host in fp32. It says which sizes
// there are, what they cost and what the model is, and has
//
//   Forward           see HostPassBatch
//   PlanForDevice()   before the first batch: whole maps, in a device's tiles
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "models/dense/products.h"
#include "models/device/device_seat.h"
#include "models/vision/device_batch.h"

namespace longview::models {

inline size_t BytesOf(const DeviceRunBytes&) { return sizeof(DeviceRunBytes); }

template <class Host>
class DeviceVisionFamily final : public Host, private DeviceVisionLayers {
 public:
  // `store` is the weights' memory. Throws DeviceError.
  DeviceVisionFamily(typename Host::Config config, typename Host::Weights weights, DeviceSeat seat,
                     std::unique_ptr<DeviceBlock> store)
      : Host(std::move(config), std::move(weights), Compute::kFp32),
        seat_(std::move(seat)),
        store_(std::move(store)),
        workspace_(*seat_.device, seat_.room) {
    this->PlanForDevice();
  }

  Compute compute() const final { return seat_.compute; }
  double memory_bytes() const final {
    return static_cast<double>(seat_.weight_bytes + workspace_.room().device());
  }

  absl::Status CheckSize(ImageSize size) const final {
    absl::Status status = Host::CheckSize(size);
    if (!status.ok()) return status;
    const DeviceRunBytes need = *this->shapes().template Of<DeviceRunBytes>(
        ShapeKey(ShapeKind::kDeviceBytes, 0, {&size, 1}), [&] {
          const VisionPicture picture = WholePicture(size, this->facts().strides.size());
          return PartBytes(*MakePass({&picture, 1}), seat_.compute);
        });
    if (need.Fits(workspace_.room())) return absl::OkStatus();
    constexpr double kMega = 1e6;
    return absl::InvalidArgumentError(absl::StrFormat(
        "pixels of %d x %d need %.1f MB of %s and %.1f MB for results, the model's workspace has "
        "%.1f MB and %.1f MB",
        size.height, size.width, static_cast<double>(need.device()) / kMega, seat_.device->name(),
        static_cast<double>(need.results) / kMega,
        static_cast<double>(workspace_.room().device()) / kMega,
        static_cast<double>(workspace_.room().results) / kMega));
  }

  std::unique_ptr<VisionBatch> Begin(std::span<const VisionInput> inputs, ScratchKeeper&,
                                     EncoderTimes* times) const final {
    const DeviceVisionLayers& layers = *this;
    return std::make_unique<DeviceVisionBatch>(*seat_.device, workspace_, layers, inputs, times);
  }

 private:
  std::unique_ptr<VisionPass> MakePass(std::span<const VisionPicture> pictures) const {
    return Host::Forward::MakePass(this->context_, pictures, /*measure=*/true);
  }
  std::unique_ptr<DevicePart> Plan(std::span<const VisionPicture> pictures) const final {
    return std::make_unique<VisionPassPart>(MakePass(pictures), *seat_.device, seat_.compute);
  }
  EncoderWork CountWork(ImageSize size) const final {
    const VisionPicture picture = {size, nullptr, {}};
    return CountOnDevice(*MakePass({&picture, 1}), seat_.compute).work;
  }
  int64_t feature_floats() const final { return this->config_.backbone ? 0 : this->facts().width; }
  std::vector<FeatureMap> MapsOf(ImageSize picture) const final {
    return Host::Forward::MapsOf(this->config_, picture);
  }
  std::vector<float> Head(std::span<const float> feature) const final {
    const DenseLayer& head = *this->weights_.head;
    std::vector<float> logits(static_cast<size_t>(head.out()));
    const float* const rows[] = {feature.data()};
    ApplyToRows(head, rows, Activation::kNone, this->pool_, logits.data());
    return logits;
  }

  // Host memory for results. The device's memory was taken when the model loaded.
  size_t MeasureWorkspace(ImageSize size) const final {
    auto floats = static_cast<size_t>(feature_floats());
    for (const FeatureMap& map : MapsOf(size)) {
      floats += size_t{1} * map.channels * map.size.height * map.size.width;
    }
    return floats * sizeof(float);
  }

  const DeviceSeat seat_;
  const std::unique_ptr<DeviceBlock> store_;
  mutable DeviceWorkspace workspace_;  // Of the executor's thread, as batches are.
};

}  // namespace longview::models
