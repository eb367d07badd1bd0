// Elements of maps that do not look at each other: patches, taps, expanded biases. A block takes a
// run of them, counted through all rows: rows of maps are short.
#pragma once

#include "kernels/cuda/program.h"
#include "kernels/cuda/typed_element.h"
#include "kernels/cuda/vision/maps_api.h"

namespace longview::kernels::cuda {

// `Each` has Args, Count(args), elements of one of Lists(args) lists at most, and Element(args,
// list, i).
template <typename Each>
struct RunProgram {
  using Args = typename Each::Args;
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 4;
  static constexpr int64_t kElements = kThreads * kPerThread;  // Per block.

  struct Thread {};
  struct Shared {};

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {(Each::Count(args) + kElements - 1) / kElements, Each::Lists(args)};
  }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 1; }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int, int thread, Thread&, Shared&) {
    const int64_t count = Each::Count(args);
    for (int i = 0; i < kPerThread; ++i) {
      const int64_t at = block.x * kElements + i * kThreads + thread;
      if (at < count) Each::Element(args, block.y, at);
    }
  }
};

// A list is an image.
template <typename T>
struct PatchElements {
  using Args = PixelPatches;
  LONGVIEW_HD static int64_t Columns(const Args& args) {
    return int64_t{args.channels} * args.side * args.side;
  }
  LONGVIEW_HD static int64_t Count(const Args& args) { return args.most * Columns(args); }
  LONGVIEW_HD static int Lists(const Args& args) { return args.count; }
  LONGVIEW_HD static void Element(const Args& args, int list, int64_t i) {
    const PixelImage& image = args.images[list];
    const int64_t columns = Columns(args), patch = i / columns;
    if (patch >= int64_t{image.rows} * image.columns) return;
    const auto column = static_cast<int>(i % columns);
    const int x = column % args.side, y = column / args.side % args.side;
    const int channel = column / (args.side * args.side);
    const int64_t row = patch / image.columns * args.side + y;
    const int64_t line = image.pixel0 + (int64_t{channel} * image.height + row) * image.width;
    Narrow(args.pixels[line + patch % image.columns * args.side + x],
           static_cast<T*>(args.out) + image.patch0 * columns + i);
  }
};

template <typename T>
struct TapElements {
  using Args = MapTaps;
  LONGVIEW_HD static int64_t Count(const Args& args) { return args.rows * args.width; }
  LONGVIEW_HD static int Lists(const Args&) { return 1; }
  LONGVIEW_HD static void Element(const Args& args, int, int64_t i) {
    const int64_t from = args.from[i / args.width];
    Narrow(from < 0 ? 0.0f : args.x[from * args.width + i % args.width],
           static_cast<T*>(args.out) + i);
  }
};

// A list is a head.
struct BiasTableElements {
  using Args = BiasTable;
  LONGVIEW_HD static int64_t Count(const Args& args) { return args.count; }
  LONGVIEW_HD static int Lists(const Args& args) { return args.heads; }
  LONGVIEW_HD static void Element(const Args& args, int list, int64_t i) {
    args.out[list * args.out_stride + i] =
        args.learned[list * args.learned_entries + args.entries[i]];
  }
};

}  // namespace longview::kernels::cuda
