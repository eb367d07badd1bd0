#include "models/transformer_ls/device_zero_blocks.h"

#include <algorithm>

#include "kernels/cuda/span/span_call.h"
#include "models/device/staged_lists.h"
#include "models/layers/span_rows.h"
#include "models/transformer_ls/device_prefill.h"

namespace longview::models {
namespace {

using kernels::kBlockSlots;
using kernels::cuda::CacheRowPlace;
using kernels::cuda::ConstantBlock;

int Pitch(const LsLmConfig& config) { return kernels::cuda::BlockPitch(config.head_dim()); }

// A block's rows through a layer's first linear and a norm. Memory of the device, for one load.
class Maker {
 public:
  Maker(const LsLmConfig& config, Compute compute, const Device& device)
      : config_(config),
        compute_(compute),
        device_(device),
        memory_(device, Carve(nullptr)),
        pinned_(device, kBlockSlots * sizeof(CacheRowPlace)) {
    Carve(memory_.data());
    StagedLists lists(pinned_.data(), reinterpret_cast<std::byte*>(places_));
    std::vector<CacheRowPlace> places;
    for (int slot = 0; slot < kBlockSlots; ++slot) places.push_back({0, slot});
    lists.Add(std::span<const CacheRowPlace>(places));
    device_.Check(device_.api().copy_in(device_.stream(), places_, pinned_.data(), pinned_.bytes()),
                  "zero memory");
  }

  absl::Status SetInput(const std::vector<float>& row, DeviceFill& fill) const {
    std::vector<float> rows;
    for (int i = 0; i < kBlockSlots; ++i) rows.insert(rows.end(), row.begin(), row.end());
    return fill.PutTyped("the norm of a hidden state of zeros", rows, compute_, x_);
  }

  void Make(const DeviceLsLayer& layer, const DeviceNorm& norm, const ConstantBlock& to) const {
    const kernels::DType dtype = SpanType(compute_);
    const kernels::cuda::TokenApi& api = device_.api().token;
    MultiplyRows(device_, layer.project, x_, kBlockSlots, y_);
    device_.Check(
        api.project(device_.stream(), {y_, layer.project.bias, norm.view(), keys_, values_, scores_,
                                       kBlockSlots, config_.width, config_.columns(), dtype}),
        "zero memory");
    device_.Check(api.store(device_.stream(),
                            {keys_,
                             values_,
                             config_.width,
                             places_,
                             {to.k, to.v, config_.heads, config_.head_dim(), Pitch(config_)},
                             kBlockSlots,
                             dtype}),
                  "zero memory");
  }

 private:
  size_t Carve(std::byte* base) {
    Carver carver(base);
    const auto typed = [&](int64_t rows, int64_t columns) {
      return carver.TakeBytes(static_cast<size_t>(rows * columns * ElementBytes(compute_)));
    };
    x_ = typed(kBlockSlots + kDevicePanelTail, config_.width);
    y_ = typed(kBlockSlots + kDevicePanelTail, 3 * config_.width + config_.columns());
    keys_ = typed(kBlockSlots, config_.width);
    values_ = typed(kBlockSlots, config_.width);
    scores_ = carver.Take<float>(kBlockSlots * config_.columns());
    places_ = carver.Take<CacheRowPlace>(kBlockSlots);
    return carver.used();
  }

  const LsLmConfig& config_;
  const Compute compute_;
  const Device& device_;
  std::byte *x_ = nullptr, *y_ = nullptr, *keys_ = nullptr, *values_ = nullptr;
  float* scores_ = nullptr;
  CacheRowPlace* places_ = nullptr;
  const DeviceBlock memory_;
  const PinnedBlock pinned_;
};

}  // namespace

void AssignZeroBlocks(const LsLmConfig& config, DevicePlaces& places, DeviceLsWeights& weights) {
  if (!config.zero_memory) return;
  const int64_t elements = int64_t{config.heads} * kBlockSlots * Pitch(config);
  for (DeviceLsLayer& layer : weights.layers) {
    layer.zero_segments = {places.Typed(elements), places.Typed(elements)};
    layer.zero_window = {places.Typed(elements), places.Typed(elements)};
  }
  const int slots = std::max(config.window, config.memory / config.segment * config.rank);
  weights.zero_count = std::max(slots / kBlockSlots + 1, kDevicePassRuns);
  weights.zeros = places.Integers(weights.zero_count);
}

absl::Status FillZeroBlocks(const LsLmConfig& config, Compute compute, const Device& device,
                            std::span<const std::vector<float>> inputs, DeviceFill& fill,
                            const DeviceLsWeights& weights) {
  if (!config.zero_memory) return absl::OkStatus();
  const kernels::cuda::PluginApi& api = device.api();
  device.Check(api.fill_zero(device.stream(), weights.zeros,
                             static_cast<uint64_t>(weights.zero_count) * sizeof(int32_t)),
               "zero memory");
  const Maker maker(config, compute, device);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const DeviceLsLayer& layer = weights.layers[i];
    if (absl::Status put = maker.SetInput(inputs[i], fill); !put.ok()) return put;
    maker.Make(layer, layer.segment_norm, layer.zero_segments);
    maker.Make(layer, layer.window_norm, layer.zero_window);
  }
  device.Wait();
  return absl::OkStatus();
}

}  // namespace longview::models
