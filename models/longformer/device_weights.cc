#include "models/longformer/device_weights.h"

#include <array>
#include <utility>

namespace longview::models {
namespace {

// In the order of the struct.
void Assign(const LongformerConfig& config, DevicePlaces places, DeviceLongformerWeights& weights) {
  const int64_t width = config.width;
  weights.words = places.Floats(config.vocab * width);
  weights.positions = places.Floats(config.positions * width);
  weights.types = places.Floats(config.types * width);
  weights.embedding_norm = places.Norm(width, config.norm_eps);
  weights.layers.resize(static_cast<size_t>(config.layers));
  for (DeviceLongformerLayer& layer : weights.layers) {
    layer.qkv = places.Linear(3 * width, width);
    layer.out = places.Linear(width, width);
    layer.expand = places.Linear(config.intermediate, width);
    layer.contract = places.Linear(width, config.intermediate);
    layer.query_global = places.Linear(width, width);
    layer.key_value_global = places.Linear(2 * width, width);
    layer.attention_norm = places.Norm(width, config.norm_eps);
    layer.output_norm = places.Norm(width, config.norm_eps);
    layer.key_global = places.Floats(width * width);
    layer.value_global = places.Floats(width * width);
  }
}

// Uploads what the checkpoint's loader reads, layer by layer.
class Sink final : public LongformerLayerSink {
 public:
  Sink(DeviceFill& fill, DeviceLongformerWeights& weights) : fill_(fill), weights_(weights) {}

  absl::Status Linear(const std::string& name, std::span<const float> weight,
                      std::span<const float> bias) override {
    DeviceLongformerLayer& layer = weights_.layers[layer_];
    const std::array<DeviceLinear*, 6> linears = {&layer.qkv,          &layer.out,
                                                  &layer.expand,       &layer.contract,
                                                  &layer.query_global, &layer.key_value_global};
    DeviceLinear& linear = *linears[linear_++];
    if (&linear == &layer.key_value_global) {
      fill_.Put(weight.first(weight.size() / 2), layer.key_global);
      fill_.Put(weight.last(weight.size() / 2), layer.value_global);
    }
    return fill_.PutLinear(name, weight, bias, linear);
  }

  void EndLayer(const Norm& attention_norm, const Norm& output_norm) override {
    DeviceLongformerLayer& layer = weights_.layers[layer_++];
    linear_ = 0;
    fill_.PutNorm(attention_norm, layer.attention_norm);
    fill_.PutNorm(output_norm, layer.output_norm);
  }

 private:
  DeviceFill& fill_;
  DeviceLongformerWeights& weights_;
  size_t layer_ = 0, linear_ = 0;
};

}  // namespace

size_t DeviceWeightBytes(const LongformerConfig& config, Compute compute) {
  Carver carver(nullptr);
  DeviceLongformerWeights weights;
  Assign(config, DevicePlaces(compute, carver), weights);
  return carver.used();
}

absl::StatusOr<LongformerOnDevice> LoadDeviceLongformerWeights(const LongformerConfig& config,
                                                               const Checkpoint& checkpoint,
                                                               const std::string& origin,
                                                               Compute compute,
                                                               const Device& device) {
  DeviceLongformerWeights weights;
  weights.block = std::make_unique<DeviceBlock>(device, DeviceWeightBytes(config, compute));
  Carver carver(weights.block->data());
  Assign(config, DevicePlaces(compute, carver), weights);
  DeviceFill fill(device);
  Sink sink(fill, weights);
  absl::StatusOr<LongformerWeights> host = LoadLongformerHost(config, checkpoint, origin, sink);
  if (!host.ok()) return host.status();
  fill.PutTable(*host->words, 1, weights.words);
  fill.PutTable(*host->positions, 1, weights.positions);
  fill.Put(host->types, weights.types);
  fill.PutNorm(host->embedding_norm, weights.embedding_norm);
  return LongformerOnDevice{*std::move(host), std::move(weights)};
}

}  // namespace longview::models
