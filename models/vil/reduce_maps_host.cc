#include "models/vil/reduce_maps.h"

#include <cmath>
#include <vector>

#include "models/ops/host_backend.h"
#include "models/vil/widened_rows.h"

namespace longview::models::ops {
namespace {

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

OpWork ReduceMaps::Work() const {
  const auto d = static_cast<double>(from.width), f = static_cast<double>(maps.maps->side);
  const double places = static_cast<double>(maps.maps->places) * d;
  return {.linear = places * f * f * d + 2 * static_cast<double>(out.count) * d * d};
}

void ReduceMaps::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const Stopwatch watch = host.Timed(&RunTimes::linears);
  const int64_t d = from.width, f = maps.maps->side, g = maps.maps->globals;
  int64_t key0 = 0;
  for (const MapTokens& image : maps.maps->images) {
    const int64_t rows = image.map.height / f, columns = image.map.width / f;
    // A patch of f x f tokens is one row of the convolution as a linear.
    std::vector<float> patches(static_cast<size_t>(rows * columns * f * f * d));
    float* to = patches.data();
    for (int64_t i = 0; i < rows * columns; ++i) {
      for (int64_t k = 0; k < f * f; ++k) {
        const int64_t y = i / columns * f + k / f, x = i % columns * f + k % f;
        const int64_t row = image.row(y * image.map.width + x);
        for (int64_t c = 0; c < d; ++c) {
          *to++ = WidenedElement(from.data, row * d + c, host.compute());
        }
      }
    }
    std::vector<float> reduced(static_cast<size_t>(rows * columns * d));
    std::vector<const float*> inputs;
    for (int64_t i = 0; i < rows * columns; ++i) inputs.push_back(patches.data() + i * f * f * d);
    ApplyToRows(*reduce.host, inputs, Activation::kNone, host.pool(), reduced.data());
    InstanceNorm(reduced.data(), rows * columns, d);
    const std::vector<float> globals = WidenedRows(from, image.row0, g, host.compute());
    inputs.clear();
    for (int64_t i = 0; i < g; ++i) inputs.push_back(globals.data() + i * d);
    for (int64_t i = 0; i < rows * columns; ++i) inputs.push_back(reduced.data() + i * d);
    ApplyToRows(*key_value.host, inputs, Activation::kNone, host.pool(),
                out.floats() + key0 * 2 * d);
    key0 += g + rows * columns;
  }
}

}  // namespace longview::models::ops
