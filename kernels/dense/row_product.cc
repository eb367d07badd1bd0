#include "kernels/dense/row_product.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/base/bfloat16.h"
#include "kernels/base/check.h"
#include "kernels/dense/row_product_ops.h"

namespace longview::kernels {
namespace {

static_assert(kRowUnit == kUnitOutputs);

// A thread takes neighbouring units, so that what it draws ahead is its own, in a few turns, so
// that a slow one does not keep the others waiting.
constexpr int64_t kTurns = 4;

int64_t Units(int64_t out) { return (out + kUnitOutputs - 1) / kUnitOutputs; }

// Element of a packed weight.
size_t Place(int64_t o, int64_t i, int64_t in, DType dtype) {
  const size_t unit = static_cast<size_t>(o / kUnitOutputs) * in * kUnitOutputs;
  const int64_t lane = o % kUnitOutputs;
  if (dtype == DType::kFloat32) return unit + i * kUnitOutputs + lane;
  return unit + i / 2 * (2 * kUnitOutputs) + 2 * lane + i % 2;
}

float WeightAt(const RowWeight& weight, int64_t o, int64_t i) {
  const size_t place = Place(o, i, weight.in, weight.dtype);
  if (weight.dtype == DType::kFloat32) return reinterpret_cast<const float*>(weight.data)[place];
  return BFloat16ToFloat(reinterpret_cast<const uint16_t*>(weight.data)[place]);
}

// Null: only the definition runs here.
const RowProductOps* OpsOf(Isa isa) {
  if (isa >= Isa::kAvx512) return &kAvx512RowProduct;
  return isa == Isa::kAvx2 ? &kAvx2RowProduct : nullptr;
}

}  // namespace

size_t RowWeightBytes(int64_t out, int64_t in, DType dtype) {
  return static_cast<size_t>(Units(out) * kUnitOutputs * in) * SizeOf(dtype);
}

RowWeight RowWeightPart(const RowWeight& weight, int64_t first, int64_t last) {
  KERNEL_CHECK(first % kRowUnit == 0 && first < last && last <= weight.out);
  RowWeight part = weight;
  part.data += RowWeightBytes(first, weight.in, weight.dtype);
  part.out = last - first;
  return part;
}

void PackRowWeight(std::span<const float> weight, int64_t out, int64_t in, DType dtype,
                   std::byte* packed) {
  KERNEL_CHECK(static_cast<int64_t>(weight.size()) == out * in);
  KERNEL_CHECK(dtype == DType::kFloat32 || in % 2 == 0);
  std::memset(packed, 0, RowWeightBytes(out, in, dtype));
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      const float value = weight[o * in + i];
      const size_t place = Place(o, i, in, dtype);
      if (dtype == DType::kFloat32) {
        reinterpret_cast<float*>(packed)[place] = value;
      } else {
        reinterpret_cast<uint16_t*>(packed)[place] = FloatToBFloat16(value);
      }
    }
  }
}

void MultiplyRows(const RowWeight& weight, const float* x, int64_t x_stride, int64_t rows, float* y,
                  int64_t y_stride, const ParallelFor& pool, Isa isa) {
  const RowProductOps* ops = OpsOf(isa);
  if (ops == nullptr) return MultiplyRowsRef(weight, x, x_stride, rows, y, y_stride);
  const size_t unit_bytes = RowWeightBytes(kUnitOutputs, weight.in, weight.dtype);
  const auto multiply = [&](int64_t u) {
    RowUnit unit;
    unit.weights = weight.data + u * unit_bytes;
    unit.in = weight.in;
    unit.x = x;
    unit.x_stride = x_stride;
    unit.rows = rows;
    unit.y = y + u * kUnitOutputs;
    unit.y_stride = y_stride;
    unit.outputs = static_cast<int>(std::min<int64_t>(kUnitOutputs, weight.out - u * kUnitOutputs));
    (weight.dtype == DType::kFloat32 ? ops->floats : ops->bfloat16)(unit);
  };
  const int64_t units = Units(weight.out);
  const int64_t turn = std::max<int64_t>(1, units / (kTurns * pool.threads()));
  std::atomic<int64_t> next{0};
  RunOnThreads(pool, [&](int) {
    for (int64_t u = next.fetch_add(turn); u < units; u = next.fetch_add(turn)) {
      for (int64_t i = u; i < std::min(u + turn, units); ++i) multiply(i);
    }
  });
}

void MultiplyRowsRef(const RowWeight& weight, const float* x, int64_t x_stride, int64_t rows,
                     float* y, int64_t y_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < weight.out; ++o) {
      double sum = 0;
      for (int64_t i = 0; i < weight.in; ++i) {
        sum += static_cast<double>(x[r * x_stride + i]) * WeightAt(weight, o, i);
      }
      y[r * y_stride + o] = static_cast<float>(sum);
    }
  }
}

}  // namespace longview::kernels
