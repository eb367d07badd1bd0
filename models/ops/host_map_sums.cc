// Keys and values that are projected over places on the host: Linformer's learned matrix, and the
// convolution of spatial reduction.
#include <cmath>
#include <cstring>
#include <vector>

#include "models/dense/products.h"
#include "models/ops/host_map_ops.h"

namespace longview::models {
namespace {

float Element(const std::byte* data, int64_t index, Compute compute) {
  if (compute == Compute::kFp32) return reinterpret_cast<const float*>(data)[index];
  const uint32_t bits = uint32_t{reinterpret_cast<const uint16_t*>(data)[index]} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// `count` rows of T from `first` on, as fp32 [count, width].
std::vector<float> Widened(const Rows& rows, int64_t first, int64_t count, Compute compute) {
  std::vector<float> out(static_cast<size_t>(count * rows.width));
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t c = 0; c < rows.width; ++c) {
      out[r * rows.width + c] = Element(rows.data, (first + r) * rows.stride + c, compute);
    }
  }
  return out;
}

// Per channel over the rows: biased variance, no weights.
void InstanceNorm(float* values, int64_t rows, int64_t d) {
  for (int64_t c = 0; c < d; ++c) {
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < rows; ++r) sum += values[r * d + c];
    const double mean = sum / static_cast<double>(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const double off = values[r * d + c] - mean;
      squares += off * off;
    }
    const double factor = 1 / std::sqrt(squares / static_cast<double>(rows) + kInstanceNormEps);
    for (int64_t r = 0; r < rows; ++r) {
      values[r * d + c] = static_cast<float>((values[r * d + c] - mean) * factor);
    }
  }
}

}  // namespace

void HostMapOps::SumPositions(const PositionSumArgs& args) {
  const int64_t d = args.from_keys.width, f = args.keys->width();
  if (counts()) {
    counted().attention += 2.0 * static_cast<double>(args.from_keys.count * d * f);
    return;
  }
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  int64_t key0 = 0;
  for (const MapTokens& image : args.images) {
    for (int part = 0; part < 2; ++part) {
      const Rows& from = part == 0 ? args.from_keys : args.from_values;
      const Table& matrix = part == 0 ? *args.keys : *args.values;
      const std::vector<float> rows = Widened(from, image.row0, image.rows, context_.compute);
      TransposedProduct(matrix.values(), rows.data(), image.rows, f, d,
                        args.out.floats() + key0 * 2 * d + part * d, 2 * d);
    }
    key0 += f;
  }
}

void HostMapOps::ReduceMaps(const ReductionArgs& args) {
  const MapReduction& maps = *args.maps.maps;
  const int64_t d = args.from.width, f = maps.side, g = maps.globals;
  if (counts()) {
    const auto places = static_cast<double>(maps.places * d);
    counted().linear += places * static_cast<double>(f * f * d);
    counted().linear += 2.0 * static_cast<double>(args.out.count * d) * static_cast<double>(d);
    return;
  }
  const Stopwatch watch(times_ ? &times_->linears : nullptr);
  int64_t key0 = 0;
  for (const MapTokens& image : maps.images) {
    const int64_t rows = image.map.height / f, columns = image.map.width / f;
    // A patch of f x f tokens is one row of the convolution as a linear.
    std::vector<float> patches(static_cast<size_t>(rows * columns * f * f * d));
    float* to = patches.data();
    for (int64_t i = 0; i < rows * columns; ++i) {
      for (int64_t k = 0; k < f * f; ++k) {
        const int64_t y = i / columns * f + k / f, x = i % columns * f + k % f;
        const int64_t row = image.row(y * image.map.width + x);
        for (int64_t c = 0; c < d; ++c) {
          *to++ = Element(args.from.data, row * d + c, context_.compute);
        }
      }
    }
    std::vector<float> reduced(static_cast<size_t>(rows * columns * d));
    std::vector<const float*> inputs;
    for (int64_t i = 0; i < rows * columns; ++i) inputs.push_back(patches.data() + i * f * f * d);
    ApplyToRows(*args.reduce->host, inputs, Activation::kNone, *context_.pool, reduced.data());
    InstanceNorm(reduced.data(), rows * columns, d);
    const std::vector<float> globals = Widened(args.from, image.row0, g, context_.compute);
    inputs.clear();
    for (int64_t i = 0; i < g; ++i) inputs.push_back(globals.data() + i * d);
    for (int64_t i = 0; i < rows * columns; ++i) inputs.push_back(reduced.data() + i * d);
    ApplyToRows(*args.key_value->host, inputs, Activation::kNone, *context_.pool,
                args.out.floats() + key0 * 2 * d);
    key0 += g + rows * columns;
  }
}

}  // namespace longview::models
