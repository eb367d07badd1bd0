// Elements of maps that do not look at each other: patches, taps, depthwise convolutions, expanded
// biases. A block takes a run of them, counted through all rows: rows of maps are short.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
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
  LONGVIEW_HD static int64_t Count(const Args& args) { return args.most * args.columns; }
  LONGVIEW_HD static int Lists(const Args& args) { return args.count; }
  LONGVIEW_HD static void Element(const Args& args, int list, int64_t i) {
    const PixelImage& image = args.images[list];
    const int64_t patch = i / args.columns;
    if (patch >= int64_t{image.rows} * image.columns) return;
    const auto column = static_cast<int>(i % args.columns);
    const int channel = column / (args.side * args.side);
    const int64_t y = patch / image.columns * args.stride + column / args.side % args.side;
    const int64_t x = patch % image.columns * args.stride + column % args.side;
    Narrow(At(args, image, channel, y - args.padding, x - args.padding),
           static_cast<T*>(args.out) + image.patch0 * args.columns + i);
  }

 private:
  LONGVIEW_HD static float At(const Args& args, const PixelImage& image, int channel, int64_t y,
                              int64_t x) {
    if (channel >= args.channels) return 0;
    if (y < 0 || y >= image.height || x < 0 || x >= image.width) return 0;
    const int64_t line = image.pixel0 + (int64_t{channel} * image.height + y) * image.width;
    return args.pixels[line + x];
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

template <typename T>
struct DepthwiseElements {
  using Args = DepthwiseRows;
  LONGVIEW_HD static int64_t Count(const Args& args) { return args.rows * args.width; }
  LONGVIEW_HD static int Lists(const Args&) { return 1; }
  LONGVIEW_HD static void Element(const Args& args, int, int64_t i) {
    const int32_t* const from = args.from + i / args.width * Args::kTaps;
    const auto channel = static_cast<int>(i % args.width);
    const T* const x = static_cast<const T*>(args.x);
    T* const out = static_cast<T*>(args.out) + i;
    if (from[0] == Args::kAsItIs) {
      *out = x[int64_t{from[4]} * args.width + channel];
      return;
    }
    float sum = args.bias[channel];
    for (int t = 0; t < Args::kTaps; ++t) {
      if (from[t] < 0) continue;
      const float value = Widen(x[int64_t{from[t]} * args.width + channel]);
      sum += args.taps[int64_t{t} * args.width + channel] * value;
    }
    Narrow(sum, out);
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
