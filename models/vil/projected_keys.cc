// Keys and values that are projected over positions before attention: Linformer's learned matrix,
// and the convolution of spatial reduction.
#include <cmath>
#include <cstring>
#include <vector>

#include "models/dense/products.h"
#include "models/parallel.h"
#include "models/vil/block.h"

namespace longview::models {
namespace {

constexpr float kInstanceNormEps = 1e-5f;

float Element(const std::byte* data, int64_t index, Compute compute) {
  if (compute == Compute::kFp32) return reinterpret_cast<const float*>(data)[index];
  const uint32_t bits = uint32_t{reinterpret_cast<const uint16_t*>(data)[index]} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Columns [first, first + d) of rows of width `stride`, as fp32 [rows, d].
std::vector<float> Gather(const std::byte* data, int64_t row0, int64_t rows, int64_t stride,
                          int64_t first, int64_t d, Compute compute) {
  std::vector<float> out(rows * d);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < d; ++c) {
      out[r * d + c] = Element(data, (row0 + r) * stride + first + c, compute);
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

void ProjectByPositions(const VilContext& context, const VilStage& stage, const VilBlock& block,
                        const VilStagePlan& plan, const VilBuffers& buffers) {
  const int64_t d = stage.width, f = stage.features;
  const Table& for_values = block.project_values ? block.project_values : block.project_keys;
  int64_t key0 = 0;
  for (const MapTokens& image : plan.images) {
    const int64_t n = stage.globals + int64_t{image.map.height} * image.map.width;
    for (int part = 0; part < 2; ++part) {
      const std::vector<float> rows =
          Gather(buffers.qkv, image.row0, n, 3 * d, (1 + part) * d, d, context.compute);
      const Table& matrix = part == 0 ? block.project_keys : for_values;
      TransposedProduct(matrix.values(), rows.data(), n, f, d,
                        buffers.keys + key0 * 2 * d + part * d, 2 * d);
    }
    key0 += f;
  }
}

void ProjectByReduction(const VilContext& context, const VilStage& stage, const VilBlock& block,
                        const VilStagePlan& plan, const VilBuffers& buffers) {
  const int64_t d = stage.width, f = stage.features, g = stage.globals;
  int64_t key0 = 0;
  for (const MapTokens& image : plan.images) {
    const int64_t rows = image.map.height / f, columns = image.map.width / f;
    // A patch of f x f tokens is one row of the convolution as a linear.
    std::vector<float> patches(rows * columns * f * f * d);
    float* to = patches.data();
    for (int64_t i = 0; i < rows * columns; ++i) {
      for (int64_t k = 0; k < f * f; ++k) {
        const int64_t y = i / columns * f + k / f, x = i % columns * f + k % f;
        const int64_t row = image.row(y * image.map.width + x);
        for (int64_t c = 0; c < d; ++c) *to++ = Element(buffers.rows, row * d + c, context.compute);
      }
    }
    std::vector<float> reduced(rows * columns * d);
    std::vector<const float*> inputs;
    for (int64_t i = 0; i < rows * columns; ++i) inputs.push_back(patches.data() + i * f * f * d);
    ApplyToRows(*block.reduce.host, inputs, Activation::kNone, *context.pool, reduced.data());
    InstanceNorm(reduced.data(), rows * columns, d);
    const std::vector<float> globals =
        Gather(buffers.rows, image.row0, g, d, 0, d, context.compute);
    inputs.clear();
    for (int64_t i = 0; i < g; ++i) inputs.push_back(globals.data() + i * d);
    for (int64_t i = 0; i < rows * columns; ++i) inputs.push_back(reduced.data() + i * d);
    ApplyToRows(*block.key_value.host, inputs, Activation::kNone, *context.pool,
                buffers.keys + key0 * 2 * d);
    key0 += g + rows * columns;
  }
}

}  // namespace longview::models
