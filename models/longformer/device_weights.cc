#include "models/longformer/device_weights.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/convert.h"

namespace longview::models {
namespace {

// Gives every tensor its place, in the order of the struct.
class Places {
 public:
  Places(const LongformerConfig& config, Compute compute, Carver& carver)
      : config_(config), compute_(compute), carver_(carver) {}

  void Assign(DeviceLongformerWeights& weights) {
    const int64_t width = config_.width;
    weights.words = carver_.Take<float>(config_.vocab * width);
    weights.positions = carver_.Take<float>(config_.positions * width);
    weights.types = carver_.Take<float>(config_.types * width);
    weights.embedding_norm = Norm();
    weights.layers.resize(static_cast<size_t>(config_.layers));
    for (DeviceLongformerLayer& layer : weights.layers) {
      layer.qkv = Linear(3 * width, width);
      layer.out = Linear(width, width);
      layer.expand = Linear(config_.intermediate, width);
      layer.contract = Linear(width, config_.intermediate);
      layer.query_global = Linear(width, width);
      layer.key_value_global = Linear(2 * width, width);
      layer.attention_norm = Norm();
      layer.output_norm = Norm();
      layer.key_global = carver_.Take<float>(width * width);
      layer.value_global = carver_.Take<float>(width * width);
    }
  }

 private:
  DeviceNorm Norm() {
    return {carver_.Take<float>(config_.width), carver_.Take<float>(config_.width),
            config_.norm_eps};
  }
  DeviceLinear Linear(int64_t out, int64_t in) {
    DeviceLinear linear;
    linear.weight = carver_.TakeBytes(static_cast<size_t>(out * in * ElementBytes(compute_)));
    linear.bias = carver_.Take<float>(out);
    linear.in = in;
    linear.out = out;
    linear.compute = compute_;
    return linear;
  }

  const LongformerConfig& config_;
  const Compute compute_;
  Carver& carver_;
};

// Uploads what the checkpoint's loader reads, layer by layer.
class Sink final : public LongformerLayerSink {
 public:
  Sink(const Device& device, DeviceLongformerWeights& weights)
      : device_(device), upload_(device), weights_(weights) {}

  absl::Status Linear(const std::string& name, std::span<const float> weight,
                      std::span<const float> bias) override {
    DeviceLongformerLayer& layer = weights_.layers[layer_];
    const std::array<DeviceLinear*, 6> linears = {&layer.qkv,          &layer.out,
                                                  &layer.expand,       &layer.contract,
                                                  &layer.query_global, &layer.key_value_global};
    DeviceLinear& linear = *linears[linear_++];
    upload_.Put(weight, linear.compute == Compute::kBf16, linear.weight);
    upload_.Put(bias, false, linear.bias);
    if (&linear == &layer.key_value_global) {
      upload_.Put(weight.first(weight.size() / 2), false, layer.key_global);
      upload_.Put(weight.last(weight.size() / 2), false, layer.value_global);
    }
    return ChooseDevicePanels(device_, name, rules_, linear);
  }

  void EndLayer(const Norm& attention_norm, const Norm& output_norm) override {
    DeviceLongformerLayer& layer = weights_.layers[layer_++];
    linear_ = 0;
    PutNorm(attention_norm, layer.attention_norm);
    PutNorm(output_norm, layer.output_norm);
  }

  void PutNorm(const Norm& norm, const DeviceNorm& to) {
    upload_.Put(norm.gamma, false, to.gamma);
    upload_.Put(norm.beta, false, to.beta);
  }

  void PutTable(const TensorView& table, float* to) {
    constexpr int64_t kElements = int64_t{1} << 22;
    std::vector<float> values;
    for (int64_t first = 0; first < table.elements(); first += kElements) {
      values.resize(static_cast<size_t>(std::min(kElements, table.elements() - first)));
      CopyFloat32(table, first, values);
      upload_.Put(values, false, to + first);
    }
  }

  void Put(std::span<const float> values, float* to) { upload_.Put(values, false, to); }

 private:
  const Device& device_;
  WeightUpload upload_;
  DeviceLongformerWeights& weights_;
  DevicePanelRules rules_;
  size_t layer_ = 0, linear_ = 0;
};

}  // namespace

size_t DeviceWeightBytes(const LongformerConfig& config, Compute compute) {
  Carver carver(nullptr);
  DeviceLongformerWeights weights;
  Places(config, compute, carver).Assign(weights);
  return carver.used();
}

absl::StatusOr<DeviceLongformerWeights> LoadDeviceLongformerWeights(const LongformerConfig& config,
                                                                    const Checkpoint& checkpoint,
                                                                    const std::string& origin,
                                                                    Compute compute,
                                                                    const Device& device) {
  DeviceLongformerWeights weights;
  weights.block = std::make_unique<DeviceBlock>(device, DeviceWeightBytes(config, compute));
  Carver carver(weights.block->data());
  Places(config, compute, carver).Assign(weights);
  Sink sink(device, weights);
  absl::StatusOr<LongformerWeights> host = LoadLongformerHost(config, checkpoint, origin, sink);
  if (!host.ok()) return host.status();
  weights.host = *std::move(host);
  sink.PutTable(*weights.host.words, weights.words);
  sink.PutTable(*weights.host.positions, weights.positions);
  sink.Put(weights.host.types, weights.types);
  sink.PutNorm(weights.host.embedding_norm, weights.embedding_norm);
  return weights;
}

}  // namespace longview::models
