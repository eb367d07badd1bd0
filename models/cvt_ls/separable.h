// Separable convolutions over the rows of a stage's maps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cvt_ls/buffers.h"
#include "models/layers/map_rows.h"

namespace longview::models {

// Rows of [C] in the compute type, `stride` bytes apart.
struct ConvolvedRows {
  const std::byte* data = nullptr;
  int64_t stride = 0;
};

// The depthwise half for row `row`, [C] of the compute type; a class row, which lies on no map, is
// copied.
void GatherDepthwise(const Separable& separable, const CvtStagePlan& plan, ConvolvedRows input,
                     int64_t row, Compute compute, std::byte* to);

// use(row, y) for every row of the stage, on the pool's threads; y is [out] of the pointwise layer,
// without its bias, of the compute type, mutable, gone after the call. `sizes` are panels that the
// layer allows. Throws what LibTorch throws.
template <typename Use>
void ConvolveRows(const Separable& separable, const CvtStagePlan& plan, ConvolvedRows input,
                  PanelSizes sizes, const PanelContext& context, Use&& use) {
  const DenseLayer& pointwise = *separable.pointwise;
  const Compute compute = pointwise.linear.compute();
  const int64_t out_bytes = pointwise.out() * ElementBytes(compute);
  ForEachGatheredPanel(
      pointwise, sizes, plan.rows(), context,
      [&](int64_t row, std::byte* to) {
        GatherDepthwise(separable, plan, input, row, compute, to);
      },
      [&](int64_t first, int64_t count, int, std::byte* y) {
        context.Each(count, [&](long i) { use(first + i, y + i * out_bytes); });
      });
}

}  // namespace longview::models
