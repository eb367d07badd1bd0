// Sums over the positions of a map, and maps turned from rows to planes.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/vision/maps_api.h"

namespace longview::kernels::cuda {

// A block per image and 8 columns of the weight, and per run of channels; a thread per channel.
template <typename T>
struct PositionSumsProgram {
  using Args = PositionSums;
  static constexpr int kThreads = 128;
  static constexpr int kColumns = 8;
  struct Thread {};
  struct Shared {};

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {args.images * Runs(args), (args.width + kThreads - 1) / kThreads};
  }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 1; }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int, int thread, Thread&, Shared&) {
    const int channel = block.y * kThreads + thread;
    if (channel >= args.width) return;
    const int64_t image = block.x / Runs(args);
    const auto first = static_cast<int>(block.x % Runs(args)) * kColumns;
    const int columns = args.columns - first < kColumns ? args.columns - first : kColumns;
    const T* row = static_cast<const T*>(args.rows) + args.begins[image] * args.row_stride;
    float sums[kColumns] = {};
    for (int64_t n = 0; n < args.tokens; ++n) {
      const float value = Widen(row[n * args.row_stride + channel]);
      const float* weight = args.weight + n * args.columns + first;
      for (int j = 0; j < kColumns; ++j) {
        if (j < columns) sums[j] += weight[j] * value;
      }
    }
    T* out = static_cast<T*>(args.out) + (image * args.columns + first) * args.out_stride + channel;
    for (int j = 0; j < kColumns; ++j) {
      if (j < columns) Narrow(sums[j], out + j * args.out_stride);
    }
  }

 private:
  LONGVIEW_HD static int64_t Runs(const Args& args) {
    return (args.columns + kColumns - 1) / kColumns;
  }
};

// A block turns 32 tokens by 32 channels: read along channels, written along tokens.
struct MapPlanesProgram {
  using Args = MapPlanes;
  static constexpr int kSide = 32;
  static constexpr int kThreads = 256;
  static constexpr int kLines = kThreads / kSide;  // At a time.
  struct Thread {};
  struct Shared {
    float tile[kSide][kSide + 1];
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {(args.most + kSide - 1) / kSide * ChannelTiles(args), args.count};
  }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 2; }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const PlaneImage& image = args.images[block.y];
    const int64_t token0 = block.x / ChannelTiles(args) * kSide;
    const int64_t channel0 = block.x % ChannelTiles(args) * kSide;
    const int along = thread % kSide;
    for (int line = thread / kSide; line < kSide; line += kLines) {
      const int64_t token = token0 + (phase == 0 ? line : along);
      const int64_t channel = channel0 + (phase == 0 ? along : line);
      if (token >= image.tokens || channel >= args.width) continue;
      if (phase == 0) {
        shared.tile[line][along] =
            args.x[int64_t{args.rows[image.token0 + token]} * args.width + channel];
      } else {
        args.out[image.out0 + channel * image.tokens + token] = shared.tile[along][line];
      }
    }
  }

 private:
  LONGVIEW_HD static int64_t ChannelTiles(const Args& args) {
    return (args.width + kSide - 1) / kSide;
  }
};

}  // namespace longview::kernels::cuda
