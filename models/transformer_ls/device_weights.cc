#include "models/transformer_ls/device_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/layers/span_rows.h"
#include "models/parallel.h"
#include "models/transformer_ls/device_zero_blocks.h"
#include "models/transformer_ls/positions.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {
namespace {

// In the order of the struct.
void Assign(const LsLmConfig& config, int max_tokens, DevicePlaces places,
            DeviceLsWeights& weights) {
  const int64_t width = config.width;
  weights.segment_ids = std::max<int64_t>(1, config.pattern().MostSegmentIds(max_tokens));
  weights.words = places.Floats(config.vocab * width);
  weights.logits = places.Linear(config.vocab, width);
  weights.layers.resize(static_cast<size_t>(config.layers));
  for (DeviceLsLayer& layer : weights.layers) {
    layer.project = places.Linear(3 * width + config.columns(), width);
    layer.out = places.Linear(width, width);
    layer.expand = places.Linear(config.intermediate, width);
    layer.contract = places.Linear(width, config.intermediate);
    for (DeviceNorm* norm : {&layer.norm1, &layer.norm2, &layer.window_norm, &layer.segment_norm}) {
      *norm = places.Norm(width, kLsNormEps);
    }
    layer.window_add = places.Floats(width);
    layer.distance_add = places.Floats(width);
    layer.window_table = places.Typed(config.window * width);
    layer.segment_table = places.Typed(weights.segment_ids * width);
  }
  AssignZeroBlocks(config, places, weights);
}

// Uploads what the checkpoint's loader reads, layer by layer.
class Sink final : public LsLmLayerSink {
 public:
  Sink(const LsLmConfig& config, DeviceFill& fill, DeviceLsWeights& weights)
      : config_(config), fill_(fill), weights_(weights) {}

  // What each layer reads at places before the text, [d]: with pre_ln norm1 makes its bias of zero.
  const std::vector<std::vector<float>>& zero_inputs() const { return zero_inputs_; }

  absl::Status Linear(const std::string& name, std::span<const float> weight,
                      std::span<const float> bias) override {
    if (!std::exchange(has_logits_, true)) {
      return fill_.PutLinear(name, weight, bias, weights_.logits);
    }
    DeviceLsLayer& layer = weights_.layers[layer_];
    const std::array<DeviceLinear*, 4> linears = {&layer.project, &layer.out, &layer.expand,
                                                  &layer.contract};
    return fill_.PutLinear(name, weight, bias, *linears[linear_++]);
  }

  void EndLayer(const LsLmVectors& vectors) override {
    DeviceLsLayer& layer = weights_.layers[layer_++];
    linear_ = 0;
    fill_.PutNorm(vectors.norm1, layer.norm1);
    fill_.PutNorm(vectors.norm2, layer.norm2);
    fill_.PutNorm(vectors.window_norm, layer.window_norm);
    fill_.PutNorm(vectors.segment_norm, layer.segment_norm);
    fill_.Put(vectors.window_add, layer.window_add);
    const std::vector<float>& beta = vectors.norm1.beta;
    zero_inputs_.push_back(config_.pre_norm ? beta : std::vector<float>(beta.size()));
  }

 private:
  const LsLmConfig& config_;
  DeviceFill& fill_;
  DeviceLsWeights& weights_;
  std::vector<std::vector<float>> zero_inputs_;
  bool has_logits_ = false;
  size_t layer_ = 0, linear_ = 0;
};

// Of all positions that a text may have, made on the host.
absl::Status PutTables(const LsLmConfig& config, const LsLmWeights& host, Compute compute,
                       DeviceFill& fill, DeviceLsWeights& weights) {
  const TorchParallelFor pool;
  RelativeTables tables(config, host, Compute::kFp32, weights.segment_ids, pool);
  tables.Cover(weights.segment_ids);
  const auto put = [&](const kernels::Table& table, int64_t entries, void* to) {
    const auto values = static_cast<size_t>(entries * config.width);
    return fill.PutTyped("a table of positions", {static_cast<const float*>(table.data), values},
                         compute, to);
  };
  for (int i = 0; i < config.layers; ++i) {
    DeviceLsLayer& layer = weights.layers[i];
    fill.Put(host.positions[i].distance_add, layer.distance_add);
    absl::Status done = put(tables.Window(i), config.window, layer.window_table);
    done.Update(put(tables.Segments(i), weights.segment_ids, layer.segment_table));
    if (!done.ok()) return done;
  }
  return absl::OkStatus();
}

}  // namespace

size_t DeviceWeightBytes(const LsLmConfig& config, Compute compute, int max_tokens) {
  Carver carver(nullptr);
  DeviceLsWeights weights;
  Assign(config, max_tokens, DevicePlaces(compute, carver), weights);
  return carver.used();
}

absl::StatusOr<DeviceLsWeights> LoadDeviceLsWeights(const LsLmConfig& config,
                                                    const Checkpoint& checkpoint,
                                                    const std::string& origin, Compute compute,
                                                    int max_tokens, const Device& device) {
  DeviceLsWeights weights;
  weights.block =
      std::make_unique<DeviceBlock>(device, DeviceWeightBytes(config, compute, max_tokens));
  Carver carver(weights.block->data());
  Assign(config, max_tokens, DevicePlaces(compute, carver), weights);
  DeviceFill fill(device);
  Sink sink(config, fill, weights);
  const absl::StatusOr<LsLmWeights> host = LoadLsLmHost(config, checkpoint, origin, sink);
  if (!host.ok()) return host.status();
  fill.PutTable(*host->words, std::sqrt(static_cast<float>(config.width)), weights.words);
  if (absl::Status put = PutTables(config, *host, compute, fill, weights); !put.ok()) return put;
  if (absl::Status filled =
          FillZeroBlocks(config, compute, device, sink.zero_inputs(), fill, weights);
      !filled.ok()) {
    return filled;
  }
  weights.parameters = host->parameters;
  return weights;
}

kernels::cuda::DecodeShape DecodeShapeOf(const LsLmConfig& config, Compute compute) {
  kernels::cuda::DecodeShape shape;
  shape.width = config.width;
  shape.intermediate = config.intermediate;
  shape.vocab = config.vocab;
  shape.attention = config.pattern();
  shape.pre_norm = config.pre_norm;
  shape.activation = DeviceActivation(config.activation);
  shape.dtype = SpanType(compute);
  return shape;
}

kernels::cuda::DecodeWeights DecodeWeightsOf(const DeviceLsWeights& weights) {
  using kernels::cuda::DecodeLinear;
  const auto linear = [](const DeviceLinear& of) { return DecodeLinear{of.weight, of.bias}; };
  kernels::cuda::DecodeWeights decode;
  decode.words = weights.words;
  decode.logits = linear(weights.logits);
  decode.segment_ids = weights.segment_ids;
  decode.zeros = weights.zeros;
  for (const DeviceLsLayer& layer : weights.layers) {
    decode.layers.push_back({linear(layer.project), linear(layer.out), linear(layer.expand),
                             linear(layer.contract), layer.norm1.view(), layer.norm2.view(),
                             layer.window_norm.view(), layer.segment_norm.view(), layer.window_add,
                             layer.distance_add, layer.window_table, layer.segment_table,
                             layer.zero_segments, layer.zero_window});
  }
  return decode;
}

}  // namespace longview::models
