#include "models/ops/weight_placer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/layers/kept_table.h"
#include "models/layers/span_rows.h"

namespace longview::models {

void DeviceStore::Allocate(const Device& device) {
  block_ = std::make_unique<DeviceBlock>(device, carver_.used());
  carver_ = Carver(block_->data());
  fill_.emplace(device);
}

template <typename Make>
Weight WeightPlacer::Place(int64_t out, int64_t in, Make&& make) {
  Weight weight;
  weight.in = in;
  weight.out = out;
  if (store_ == nullptr) {
    weight.host = make();
    return weight;
  }
  weight.device = store_->places().Linear(out, in);
  if (fills()) {
    load_.set_taker(
        [&](const std::string& name, std::span<const float> values, std::span<const float> bias) {
          return store_->fill().PutLinear(name, values, bias, weight.device);
        });
  }
  (void)make();
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
    load_.set_taker(
        [&](const std::string& part, std::span<const float> values, std::span<const float> added) {
          return store_->fill().PutLinear(part, values, added, (next++)->device);
        });
  }
  load_.set_takes_int8(store_ == nullptr);
  std::vector<std::optional<DenseLayer>> layers = load_.Split(name, parts, out, in, bias);
  load_.set_takes_int8(false);
  load_.set_taker(nullptr);
  if (store_ != nullptr) return weights;
  for (size_t i = 0; i < layers.size(); ++i) weights[i].host = std::move(layers[i]);
  return weights;
}

Weight WeightPlacer::Stack(const std::string& prefix, const std::vector<WeightLoader::Part>& parts,
                           int64_t in) {
  int64_t out = 0;
  for (const WeightLoader::Part& part : parts) out += part.out;
  load_.set_takes_int8(store_ == nullptr);
  Weight weight = Place(out, in, [&] { return load_.Stack(prefix, parts, in); });
  load_.set_takes_int8(false);
  return weight;
}

Weight WeightPlacer::Pack(const std::string& name, std::span<const float> values,
                          std::vector<float> bias, int64_t out, int64_t in) {
  return Place(out, in, [&] { return load_.Pack(name, values, std::move(bias), out, in); });
}

Weight WeightPlacer::Pixels(const std::string& name, std::span<const float> values,
                            std::vector<float> bias, int64_t out, int64_t in) {
  const int64_t columns = PixelColumns(in);
  if (store_ == nullptr || columns == in || values.empty()) {
    return Pack(name, values, std::move(bias), out, store_ == nullptr ? in : columns);
  }
  std::vector<float> padded(static_cast<size_t>(out * columns));
  for (int64_t row = 0; row < out; ++row) {
    std::copy_n(values.data() + row * in, in, padded.data() + row * columns);
  }
  return Pack(name, padded, std::move(bias), out, columns);
}

Weight WeightPlacer::Taps(const std::string& name, int64_t out, int64_t in, int64_t kernel) {
  return Place(out, in * kernel * kernel, [&] { return load_.Taps(name, out, in, kernel); });
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
  if (store_ == nullptr) {
    KeepTable(tensor, load_);
    return table;
  }
  table.set_device(store_->places().Floats(rows * width));
  if (fills() && tensor != nullptr) load_.Fail(store_->fill().PutTable(*tensor, table.device()));
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

Matrix WeightPlacer::StoredMatrix(const TensorView* tensor, int64_t rows, int64_t width) {
  Matrix matrix;
  if (store_ != nullptr) matrix.device = store_->places().Floats(rows * width);
  if (tensor == nullptr || !load_.ok() || !load_.reads()) return matrix;
  if (fills()) {
    load_.Fail(store_->fill().PutTable(*tensor, matrix.device));
  } else if (store_ == nullptr) {
    matrix.host = FloatMatrix(load_.Copy(tensor));
    load_.CountBytes(4.0 * static_cast<double>(rows * width));
  }
  return matrix;
}

TypedRows WeightPlacer::Typed(const std::string& name, std::vector<float> values, int64_t rows,
                              int64_t width) {
  void* device = nullptr;
  if (store_ != nullptr) {
    device = store_->places().Typed(rows * width);
    if (fills() && load_.ok()) {
      load_.Fail(store_->fill().PutTyped(name, values, store_->compute(), device));
    }
  }
  if (store_ != nullptr) values.clear();
  TypedRows typed(std::move(values), rows, width);
  if (store_ != nullptr) typed.set_device(device, SpanType(store_->compute()));
  return typed;
}

}  // namespace longview::models
