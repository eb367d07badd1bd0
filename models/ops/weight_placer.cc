#include "models/ops/weight_placer.h"

#include <span>
#include <utility>

namespace longview::models {

void DeviceStore::Allocate(const Device& device) {
  block_ = std::make_unique<DeviceBlock>(device, carver_.used());
  carver_ = Carver(block_->data());
  fill_.emplace(device);
}

Weight WeightPlacer::Stack(const std::string& prefix,
                           const std::vector<WeightLoader::Part>& parts, int64_t in) {
  Weight weight;
  weight.in = in;
  for (const WeightLoader::Part& part : parts) weight.out += part.out;
  if (store_ == nullptr) {
    weight.host = load_.Stack(prefix, parts, in);
    return weight;
  }
  weight.device = store_->places().Linear(weight.out, in);
  if (fills()) {
    load_.set_taker([&](const std::string& name, std::span<const float> values,
                        std::span<const float> bias) {
      return store_->fill().PutLinear(name, values, bias, weight.device);
    });
  }
  (void)load_.Stack(prefix, parts, in);
  load_.set_taker(nullptr);
  return weight;
}

std::vector<Weight> WeightPlacer::Split(const std::string& name, int64_t parts, int64_t out,
                                        int64_t in, bool bias) {
  std::vector<Weight> weights(static_cast<size_t>(parts));
  for (Weight& weight : weights) {
    weight.in = in;
    weight.out = out;
    if (store_ != nullptr) weight.device = store_->places().Linear(out, in);
  }
  auto next = weights.begin();
  if (fills()) {
    load_.set_taker([&](const std::string& part, std::span<const float> values,
                        std::span<const float> added) {
      return store_->fill().PutLinear(part, values, added, (next++)->device);
    });
  }
  std::vector<std::optional<DenseLayer>> layers = load_.Split(name, parts, out, in, bias);
  load_.set_taker(nullptr);
  if (store_ != nullptr) return weights;
  for (size_t i = 0; i < layers.size(); ++i) weights[i].host = std::move(layers[i]);
  return weights;
}

NormWeight WeightPlacer::Norm(models::Norm norm, int64_t width) {
  NormWeight placed;
  placed.width = width;
  if (store_ != nullptr) {
    placed.device = store_->places().Norm(width, norm.eps);
    if (fills() && load_.ok()) store_->fill().PutNorm(norm, placed.device);
  }
  placed.host = std::move(norm);
  return placed;
}

Table WeightPlacer::Stored(const TensorView* tensor, int64_t rows, int64_t width) {
  Table table(tensor, rows, width);
  if (store_ == nullptr) return table;
  table.set_device(store_->places().Floats(rows * width));
  if (fills() && tensor != nullptr) store_->fill().PutTable(*tensor, 1, table.device());
  return table;
}

Table WeightPlacer::Values(std::vector<float> values, int64_t rows, int64_t width) {
  float* device = nullptr;
  if (store_ != nullptr) {
    device = store_->places().Floats(rows * width);
    if (fills() && load_.ok()) store_->fill().Put(values, device);
  }
  Table table(std::move(values), rows, width);
  table.set_device(device);
  return table;
}

}  // namespace longview::models
