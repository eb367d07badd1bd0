#include "models/layers/weight_loader.h"

#include <array>
#include <utility>

#include "models/checkpoint/convert.h"

namespace longview::models {

const TensorView* WeightLoader::Keep(absl::StatusOr<const TensorView*> found) {
  if (!found.ok()) {
    Fail(found.status());
    return nullptr;
  }
  if (*found != nullptr) parameters_ += static_cast<double>((*found)->elements());
  return *found;
}

std::vector<float> WeightLoader::Copy(const TensorView* tensor) {
  if (tensor == nullptr || !format_) return {};
  std::vector<float> values(static_cast<size_t>(tensor->elements()));
  if (absl::Status status = ReadFloat32(*tensor, 0, values); !status.ok()) Fail(std::move(status));
  checkpoint_.Release(*tensor);
  return values;
}

std::vector<float> WeightLoader::Vector(const std::string& name, int64_t size) {
  std::vector<float> values = Copy(Get(name, {size}));
  CountBytes(4.0 * static_cast<double>(values.size()));
  return values;
}

Norm WeightLoader::LayerNorm(const std::string& name, int64_t width, float eps, bool bias) {
  Norm norm = {Vector(name + ".weight", width), {}, eps};
  norm.beta = bias ? Vector(name + ".bias", width) : std::vector<float>(norm.gamma.size());
  return norm;
}

absl::StatusOr<Linear> WeightLoader::PackAs(bool int8, const std::string& name,
                                            std::span<const float> weight, int64_t out,
                                            int64_t in) {
  const Compute compute = format_->compute;
  if (!int8) return Linear::Pack(name, weight, out, in, compute, rules_);
  Int8Observer* const observer = format_->int8->observer;
  if (observer == nullptr) return Linear::PackInt8(name, weight, out, in, compute);
  return Linear::PackObserved(name, weight, out, in, compute, rules_, *observer);
}

std::optional<DenseLayer> WeightLoader::Pack(const std::string& name, std::span<const float> weight,
                                             std::vector<float> bias, int64_t out, int64_t in) {
  if (!status_.ok() || !format_) return std::nullopt;
  if (taker_) {
    status_ = taker_(name, weight, bias);
    return std::nullopt;
  }
  const bool int8 = takes_int8_ && format_->int8 != nullptr && format_->int8->Takes(name);
  absl::StatusOr<Linear> linear = PackAs(int8, name, weight, out, in);
  if (!linear.ok()) {
    status_ = linear.status();
    return std::nullopt;
  }
  CountBytes(static_cast<double>(linear->bytes()));
  DenseLayer layer{*std::move(linear), std::move(bias)};
  const Compute compute = format_->compute;
  // One pack of int8 is for any number of rows.
  if (packs_rows_ && !int8 && RowLinear::Pays(compute)) {
    const size_t bytes = RowLinear::PackBytes(out, in, compute);
    Scratch memory = Scratch::InHugePages(bytes);
    RowLinear rows(weight, out, in, compute, memory.data());
    layer.rows = std::make_unique<RowPack>(RowPack{std::move(memory), rows});
    CountBytes(static_cast<double>(bytes));
  }
  return layer;
}

std::optional<DenseLayer> WeightLoader::Stack(const std::string& prefix,
                                              const std::vector<Part>& parts, int64_t in) {
  int64_t total = 0;
  for (const Part& part : parts) total += part.out;
  std::vector<float> weight(format_ ? static_cast<size_t>(total * in) : 0);
  std::vector<float> bias;
  std::span<float> free = weight;
  for (const Part& part : parts) {
    const TensorView* stored = Get(prefix + part.name + ".weight", {part.out, in});
    std::vector<float> part_bias(static_cast<size_t>(part.out));
    if (part.bias) part_bias = Vector(prefix + part.name + ".bias", part.out);
    bias.insert(bias.end(), part_bias.begin(), part_bias.end());
    if (stored == nullptr || !format_) continue;
    const auto size = static_cast<size_t>(part.out * in);
    absl::Status status = ReadFloat32(*stored, 0, free.first(size));
    if (!status.ok()) Fail(std::move(status));
    checkpoint_.Release(*stored);
    free = free.subspan(size);
  }
  return Pack(prefix + parts[0].name, weight, std::move(bias), total, in);
}

std::vector<std::optional<DenseLayer>> WeightLoader::Split(const std::string& name, int64_t parts,
                                                           int64_t out, int64_t in, bool bias) {
  const std::vector<float> weights = Copy(Get(name + ".weight", {parts * out, in}));
  std::vector<float> biases(static_cast<size_t>(parts * out));
  if (bias) biases = Vector(name + ".bias", parts * out);
  std::vector<std::optional<DenseLayer>> layers;
  for (int64_t part = 0; part < parts; ++part) {
    if (!ok() || !reads()) {
      layers.emplace_back();
      continue;
    }
    const auto own =
        std::span(biases).subspan(static_cast<size_t>(part * out), static_cast<size_t>(out));
    layers.push_back(Pack(name,
                          std::span(weights).subspan(static_cast<size_t>(part * out * in),
                                                     static_cast<size_t>(out * in)),
                          {own.begin(), own.end()}, out, in));
  }
  return layers;
}

std::optional<DenseLayer> WeightLoader::Taps(const std::string& name, int64_t out, int64_t in,
                                             int64_t kernel, bool flat) {
  const int64_t taps = kernel * kernel;
  const std::vector<int64_t> shape =
      flat ? std::vector<int64_t>{out, in * taps} : std::vector<int64_t>{out, in, kernel, kernel};
  const std::vector<float> stored = Copy(Get(name + ".weight", shape));
  std::vector<float> bias = Vector(name + ".bias", out);
  std::vector<float> moved(stored.size());
  for (size_t row = 0; row < stored.size(); row += in * taps) {
    for (int64_t c = 0; c < in; ++c) {
      for (int64_t t = 0; t < taps; ++t) moved[row + t * in + c] = stored[row + c * taps + t];
    }
  }
  return Pack(name, moved, std::move(bias), out, in * taps);
}

void NarrowSizes(const DenseLayer& layer, PanelSizes& sizes) {
  sizes.small = sizes.small && layer.linear.sizes().small;
  sizes.medium = sizes.medium && layer.linear.sizes().medium;
  // A panel of any size suits int8 layers alone; beside others they take theirs.
  if (layer.linear.sizes().any) return;
  sizes.any = false;
  sizes.large_rows = layer.linear.sizes().large_rows;
  sizes.medium_rows = layer.linear.sizes().medium_rows;
}

std::vector<float> DecoderBias(const std::string& own, const std::string& shared, bool tied,
                               int64_t size, WeightLoader& load) {
  if (!tied && load.source().Has(own)) {
    load.source().Ignore(shared);
    return load.Vector(own, size);
  }
  const std::array<std::string, 2> names = {shared, own};
  return load.Copy(load.GetTied(names, {size}));
}

}  // namespace longview::models
