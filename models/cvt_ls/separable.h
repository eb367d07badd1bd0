// Separable convolutions over the rows of a stage's maps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cvt_ls/buffers.h"
#include "models/layers/map_rows.h"

namespace longview::models {

// Rows of [C] in the compute type, `stride` bytes apart, from row `row0` of the batch on.
struct ConvolvedRows {
  const std::byte* data = nullptr;
  int64_t stride = 0;
  int64_t row0 = 0;

  const std::byte* at(int64_t row) const { return data + (row - row0) * stride; }
};

// Rows of the batch whose convolution is wanted; their neighbours on the map are among the input.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};

// The depthwise half for row `row`, [C] of the compute type; a class row, which lies on no map, is
// copied.
void GatherDepthwise(const Separable& separable, const CvtStagePlan& plan, ConvolvedRows input,
                     int64_t row, Compute compute, std::byte* to);

// use(row, y) for every row of the range, on the pool's threads; y is [out] of the pointwise layer,
// without its bias, of the compute type, mutable, gone after the call. `sizes` are panels that the
// layer allows. Throws what LibTorch throws.
template <typename Use>
void ConvolveRows(const Separable& separable, const CvtStagePlan& plan, ConvolvedRows input,
                  RowRange range, PanelSizes sizes, const PanelContext& context, Use&& use) {
  const DenseLayer& pointwise = *separable.pointwise;
  const Compute compute = pointwise.linear.compute();
  const int64_t out_bytes = pointwise.out() * ElementBytes(compute);
  ForEachGatheredPanel(
      pointwise, sizes, range.count, context,
      [&](int64_t i, std::byte* to) {
        GatherDepthwise(separable, plan, input, range.first + i, compute, to);
      },
      [&](int64_t done, int64_t count, int, std::byte* y) {
        const int64_t first = range.first + done;
        context.Each(count, [&](long i) { use(first + i, y + i * out_bytes); });
      });
}

}  // namespace longview::models
