// Feature maps as rows, and linears over rows that are gathered while they are needed: taps of a
// convolution, columns of a channel-major map, pooled regions.
//
// A convolution is a gather and a linear, so the rows of maps of any sizes share panels, and a
// position's bits depend on its taps alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/cost/stopwatch.h"
#include "models/dense/layer.h"
#include "models/parallel.h"

namespace longview::models {

// One map among the rows of a buffer: positions row by row from row0 on.
struct MapRows {
  int height = 0;
  int width = 0;
  int64_t row0 = 0;
  int64_t rows() const { return int64_t{height} * width; }
};

// How panels are filled and timed. `panel` holds kPanelRows rows of the widest gathered input, in
// the compute type of the layers.
struct PanelContext {
  const kernels::ParallelFor* pool = nullptr;
  std::byte* panel = nullptr;
  RunTimes* times = nullptr;  // May be null.

  // body(i) for i < count, on the pool's threads.
  template <typename Body>
  void Each(int64_t count, Body&& body) const {
    const Stopwatch watch(times ? &times->rest : nullptr);
    ParallelRanges(*pool, count, 4, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) body(i);
    });
  }
  // One panel of a linear, of which `used` rows count.
  PanelOutput Multiply(const DenseLayer& layer, const void* x, int panel_rows, int64_t used) const {
    const Stopwatch watch(times ? &times->linears : nullptr);
    return layer.linear.Panel(x, panel_rows, used);
  }
};

// gather(row, to) writes a row of [in] on the pool's threads; use(first, count, panel_rows, y) gets
// the finished panel [panel_rows, out], of which `count` rows count, on the caller's thread.
// Throws what LibTorch throws.
template <typename Gather, typename Use>
void ForEachGatheredPanel(const DenseLayer& layer, PanelSizes sizes, int64_t rows,
                          const PanelContext& context, Gather&& gather, Use&& use) {
  const int64_t in_bytes = layer.in() * ElementBytes(layer.linear.compute());
  for (int64_t row = 0; row < rows;) {
    const int panel = NextPanel(sizes, rows - row);
    const int64_t used = std::min<int64_t>(panel, rows - row);
    context.Each(used, [&](long i) { gather(row + i, context.panel + i * in_bytes); });
    const PanelOutput y = context.Multiply(layer, context.panel, panel, used);
    use(row, used, panel, static_cast<std::byte*>(y.data()));
    row += used;
  }
}

// A k x k convolution with a border of k / 2 zeros. Columns of the layer are (row, column,
// channel) of the taps.
struct Convolution {
  DenseLayer layer;
  int kernel = 3;
  int stride = 1;

  int64_t channels() const { return layer.in() / (int64_t{kernel} * kernel); }
};

// The taps of output row `row`, counted over all of `outputs`, which inputs[i] become map by map;
// `input` is the whole buffer of rows.
void GatherTaps(const Convolution& convolution, const std::byte* input,
                const std::vector<MapRows>& inputs, const std::vector<MapRows>& outputs,
                int64_t row, std::byte* to);

// use(row, y) for every output position of every map, on the pool's threads: `row` counts from
// output[0].row0, y is a row [out] of the compute type, mutable. input[i] becomes output[i], whose
// rows follow each other without gaps.
template <typename Use>
void Convolve(const Convolution& convolution, const std::byte* input,
              const std::vector<MapRows>& inputs, const std::vector<MapRows>& outputs,
              const PanelContext& context, Use&& use) {
  int64_t rows = 0;
  for (const MapRows& map : outputs) rows += map.rows();
  const int64_t out_bytes =
      convolution.layer.out() * ElementBytes(convolution.layer.linear.compute());
  const auto gather = [&](int64_t row, std::byte* to) {
    GatherTaps(convolution, input, inputs, outputs, row, to);
  };
  ForEachGatheredPanel(
      convolution.layer, convolution.layer.linear.sizes(), rows, context, gather,
      [&](int64_t first, int64_t count, int, std::byte* y) {
        context.Each(count, [&](long i) { use(outputs[0].row0 + first + i, y + i * out_bytes); });
      });
}

}  // namespace longview::models
