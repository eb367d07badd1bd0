#include "models/dense/int8_linear.h"

#include <algorithm>

#include "models/parallel.h"

namespace longview::models {

using kernels::kInt8Unit;

Int8Linear::Int8Linear(std::span<const float> weight, int64_t out, int64_t in,
                       const kernels::Int8Kernels& kernels)
    : out_(out),
      in_(in),
      kernels_(&kernels),
      memory_(Scratch::InHugePages(kernels::Int8WeightBytes(out, in))),
      scales_(static_cast<size_t>(out)),
      offsets_(static_cast<size_t>(out)) {
  auto* packed = reinterpret_cast<int8_t*>(memory_.data());
  kernels::PackInt8Weight(weight, out, in, packed, scales_.data());
  if (kernels.shift == 0) return;
  for (int64_t o = 0; o < out; ++o) {
    int32_t sum = 0;
    for (int64_t i = 0; i < in; ++i) sum += packed[kernels::Int8Place(o, i, in)];
    offsets_[static_cast<size_t>(o)] = kernels.shift * sum;
  }
}

Int8Linear::Quantized Int8Linear::Carve(int64_t rows, Carver& carver) const {
  Quantized quantized;
  quantized.scales = carver.Take<float>(rows);
  quantized.rows = carver.TakeBytes(static_cast<size_t>(rows * row_bytes()));
  return quantized;
}

size_t Int8Linear::ScratchBytes(int64_t rows) const {
  Carver measure(nullptr);
  Carve(rows, measure);
  return measure.used();
}

// Outputs of one unit for up to 64 rows, whose sums stay in the cache.
void Int8Linear::MultiplyTile(const Quantized& x, int64_t unit, int64_t first, int64_t rows,
                              Compute compute, std::byte* y) const {
  int32_t sums[kInt8Unit * kInt8Unit];
  const int64_t columns = kernels::Int8Columns(in_), output = unit * kInt8Unit;
  kernels_->multiply(reinterpret_cast<const int8_t*>(memory_.data()) + output * columns,
                     x.rows + first * row_bytes(), columns, rows, sums);
  const int64_t count = std::min(kInt8Unit, out_ - output);
  for (int64_t r = 0; r < rows; ++r) {
    std::byte* to = y + ((first + r) * out_ + output) * ElementBytes(compute);
    const auto dequantize = [&](auto function, auto* row) {
      function(sums + r * kInt8Unit, offsets_.data() + output, scales_.data() + output,
               x.scales[first + r], count, row);
    };
    if (compute == Compute::kFp32) {
      dequantize(kernels_->dequantize, reinterpret_cast<float*>(to));
    } else {
      dequantize(kernels_->dequantize_bf16, reinterpret_cast<uint16_t*>(to));
    }
  }
}

void Int8Linear::Multiply(const void* x, int64_t rows, Compute compute, std::byte* scratch, void* y,
                          const kernels::ParallelFor& pool) const {
  Carver carver(scratch);
  const Quantized quantized = Carve(rows, carver);
  ParallelRanges(pool, rows, 8, [&](long begin, long end) {
    for (long r = begin; r < end; ++r) {
      std::byte* to = quantized.rows + r * row_bytes();
      quantized.scales[r] =
          compute == Compute::kFp32
              ? kernels_->quantize(static_cast<const float*>(x) + r * in_, in_, to)
              : kernels_->quantize_bf16(static_cast<const uint16_t*>(x) + r * in_, in_, to);
    }
  });
  // A thread keeps a unit of the weight in its cache while all rows pass.
  const int64_t tiles = (rows + kInt8Unit - 1) / kInt8Unit;
  ParallelRanges(pool, kernels::Int8Units(out_) * tiles, 1, [&](long begin, long end) {
    for (long tile = begin; tile < end; ++tile) {
      const int64_t first = tile % tiles * kInt8Unit;
      MultiplyTile(quantized, tile / tiles, first, std::min(kInt8Unit, rows - first), compute,
                   static_cast<std::byte*>(y));
    }
    if (kernels_->release != nullptr) kernels_->release();
  });
}

}  // namespace longview::models
