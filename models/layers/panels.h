// A linear over the rows of a ragged batch, panel by panel, with what happens to each row while its
// panel is in cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "models/cost/stopwatch.h"
#include "models/dense/layer.h"
#include "models/parallel.h"

namespace longview::models {

// y = input W^T for `rows` rows of input [rows + kPanelRows readable, in]; use(row, y) gets each
// row of y, [out] of the layer's compute type, mutable, gone after the call, on the pool's threads.
// `sizes` are panels that the layer allows. `times` may be null. Throws what LibTorch throws.
template <typename Use>
void ForEachRow(const DenseLayer& layer, const std::byte* input, int64_t rows, PanelSizes sizes,
                const kernels::ParallelFor& pool, RunTimes* times, Use&& use) {
  const int64_t in_bytes = layer.in() * ElementBytes(layer.linear.compute());
  const int64_t out_bytes = layer.out() * ElementBytes(layer.linear.compute());
  for (int64_t row = 0; row < rows;) {
    const int panel = NextPanel(sizes, rows - row);
    const int64_t used = std::min<int64_t>(panel, rows - row);
    Stopwatch linear(times ? &times->linears : nullptr);
    const PanelOutput y = layer.linear.Panel(input + row * in_bytes, panel, used);
    linear.Stop();
    const Stopwatch rest(times ? &times->rest : nullptr);
    ParallelRanges(pool, used, 8, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) {
        use(row + i, static_cast<std::byte*>(y.data()) + i * out_bytes);
      }
    });
    row += used;
  }
}

// ForEachRow for the few rows of a decode step, which reads the weight once for all of them:
// through the layer's second pack, or that of int8. input [rows, in]; `products` is scratch of
// RowLinear::ScratchBytes. REQUIRES: layer.rows or int8; input is not in `products`.
template <typename Use>
void ForEachFewRow(const DenseLayer& layer, const std::byte* input, int64_t rows,
                   std::byte* products, const kernels::ParallelFor& pool, RunTimes* times,
                   Use&& use) {
  if (layer.rows == nullptr) {
    return ForEachRow(layer, input, rows, layer.linear.sizes(), pool, times, use);
  }
  const int64_t in_bytes = layer.in() * ElementBytes(layer.linear.compute());
  const int64_t out_bytes = layer.out() * ElementBytes(layer.linear.compute());
  for (int64_t row = 0; row < rows; row += RowLinear::kRows) {
    const int64_t count = std::min(RowLinear::kRows, rows - row);
    Stopwatch linear(times ? &times->linears : nullptr);
    std::byte* y = layer.rows->linear.Multiply(input + row * in_bytes, count, products, pool);
    linear.Stop();
    const Stopwatch rest(times ? &times->rest : nullptr);
    ParallelRanges(pool, count, 2, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) use(row + i, y + i * out_bytes);
    });
  }
}

}  // namespace longview::models
