// Performer's attention as block programs. A thread is a feature while rows become features, and a
// channel while values are summed.
#pragma once

#include <cmath>

#include "kernels/cuda/program.h"
#include "kernels/cuda/typed_element.h"
#include "kernels/cuda/vision/performer_api.h"

namespace longview::kernels::cuda {

// Features of up to kRows rows of one head at a time. Phases: Load, Project, Top, Weigh.
template <typename T>
struct FeatureTile {
  static constexpr int kRows = 8;

  float x[kRows][kMostPerformerFeatures];
  float phi[kRows][kMostPerformerFeatures];
  float tops[kRows];     // Largest projection.
  float squares[kRows];  // |x|^2

  LONGVIEW_HD void Load(const PerformerRows& args, const void* data, int64_t row, int rows,
                        int head, int thread) {
    if (thread >= args.width) return;
    const T* at = static_cast<const T*>(data) + int64_t{head} * args.width + thread;
    for (int i = 0; i < rows; ++i) x[i][thread] = Widen(at[(row + i) * args.row_stride]);
  }

  LONGVIEW_HD void Project(const PerformerRows& args, int rows, int thread) {
    if (thread >= args.features) return;
    const float scale = 1.0f / sqrtf(sqrtf(static_cast<float>(args.width)));
    const float* w = args.projection + int64_t{thread} * args.width;
    for (int i = 0; i < rows; ++i) {
      float sum = 0;
      for (int d = 0; d < args.width; ++d) sum += x[i][d] * w[d];
      phi[i][thread] = scale * sum;
    }
  }

  // A thread per row.
  LONGVIEW_HD void Top(const PerformerRows& args, int rows, int thread) {
    if (thread >= rows) return;
    float top = phi[thread][0], sum = 0;
    for (int f = 1; f < args.features; ++f) top = fmaxf(top, phi[thread][f]);
    for (int d = 0; d < args.width; ++d) sum += x[thread][d] * x[thread][d];
    tops[thread] = top;
    squares[thread] = sum;
  }

  // `top` is the image's for keys; queries use their own.
  LONGVIEW_HD void Weigh(const PerformerRows& args, int rows, bool own, float top, int thread) {
    constexpr float kFloor = 1e-4f;
    if (thread >= args.features) return;
    const float root = sqrtf(static_cast<float>(args.width));
    const float norm = 1.0f / sqrtf(static_cast<float>(args.features));
    for (int i = 0; i < rows; ++i) {
      const float shift = squares[i] / (2.0f * root) + (own ? tops[i] : top);
      phi[i][thread] = norm * (expf(phi[i][thread] - shift) + kFloor);
    }
  }
};

// What the three kernels share. A block is a head of an image; Tiles says how many runs of rows it
// walks.
template <typename T>
struct PerformerBlock {
  static constexpr int kThreads = kMostPerformerFeatures;
  static constexpr int kRows = FeatureTile<T>::kRows;

  LONGVIEW_HD static int Rows(const PerformerRows& args, int64_t image) {
    return args.offsets[image + 1] - args.offsets[image];
  }
  LONGVIEW_HD static int Tiles(const PerformerRows& args, int64_t image) {
    return (Rows(args, image) + kRows - 1) / kRows;
  }
  LONGVIEW_HD static int TileRows(const PerformerRows& args, int64_t image, int tile) {
    const int left = Rows(args, image) - tile * kRows;
    return left < kRows ? left : kRows;
  }
  LONGVIEW_HD static int64_t TileRow(const PerformerRows& args, int64_t image, int tile) {
    return args.offsets[image] + int64_t{tile} * kRows;
  }
  LONGVIEW_HD static float* Sums(const PerformerRows& args, int64_t image, int head) {
    return args.sums + (image * args.heads + head) * args.features * (args.width + 1);
  }
};

// tops[image, head]; -infinity where an image has no rows.
template <typename T>
struct PerformerTopsProgram : PerformerBlock<T> {
  using Args = PerformerRows;
  using Base = PerformerBlock<T>;
  struct Thread {
    float top;
  };
  struct Shared {
    FeatureTile<T> tile;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.images, args.heads}; }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return 3 * Base::Tiles(args, block.x) + 1;
  }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread& mine,
                                Shared& shared) {
    const int tile = phase / 3;
    if (thread == 0 && phase % 3 == 0)
      mine.top = phase == 0 ? -__builtin_inff() : Largest(args, block, tile, mine, shared);
    if (tile == Base::Tiles(args, block.x)) {
      if (thread == 0) args.tops[block.x * args.heads + block.y] = mine.top;
      return;
    }
    const int rows = Base::TileRows(args, block.x, tile);
    if (phase % 3 == 0) {
      shared.tile.Load(args, args.k, Base::TileRow(args, block.x, tile), rows, block.y, thread);
    } else if (phase % 3 == 1) {
      shared.tile.Project(args, rows, thread);
    } else {
      shared.tile.Top(args, rows, thread);
    }
  }

 private:
  // With the tops of the tile before.
  LONGVIEW_HD static float Largest(const Args& args, Block block, int tile, const Thread& mine,
                                   const Shared& shared) {
    float top = mine.top;
    const int rows = Base::TileRows(args, block.x, tile - 1);
    for (int i = 0; i < rows; ++i) top = fmaxf(top, shared.tile.tops[i]);
    return top;
  }
};

// sums[image, head]: phi(k)^T v and the sum of phi(k), rows in order.
template <typename T>
struct PerformerKeysProgram : PerformerBlock<T> {
  using Args = PerformerRows;
  using Base = PerformerBlock<T>;
  struct Thread {
    float top;  // Of the image.
  };
  struct Shared {
    FeatureTile<T> tile;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.images, args.heads}; }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return 5 * Base::Tiles(args, block.x) + 1;
  }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread& mine,
                                Shared& shared) {
    if (phase == 0) return Clear(args, block, thread, mine);
    const int tile = (phase - 1) / 5;
    const int rows = Base::TileRows(args, block.x, tile);
    switch ((phase - 1) % 5) {
      case 0:
        return shared.tile.Load(args, args.k, Base::TileRow(args, block.x, tile), rows, block.y,
                                thread);
      case 1:
        return shared.tile.Project(args, rows, thread);
      case 2:
        return shared.tile.Top(args, rows, thread);
      case 3:
        return shared.tile.Weigh(args, rows, false, mine.top, thread);
      default:
        return Add(args, block, Base::TileRow(args, block.x, tile), rows, thread, shared);
    }
  }

 private:
  // Column width of the sums is the features' own sum.
  LONGVIEW_HD static void Clear(const Args& args, Block block, int thread, Thread& mine) {
    mine.top = -__builtin_inff();
    for (int head = 0; head < args.heads; ++head) {
      mine.top = fmaxf(mine.top, args.tops[block.x * args.heads + head]);
    }
    float* sums = Base::Sums(args, block.x, block.y);
    for (int column = thread; column <= args.width; column += Base::kThreads) {
      for (int f = 0; f < args.features; ++f) sums[int64_t{f} * (args.width + 1) + column] = 0;
    }
  }

  LONGVIEW_HD static void Add(const Args& args, Block block, int64_t row, int rows, int thread,
                              const Shared& shared) {
    const T* v = static_cast<const T*>(args.v) + int64_t{block.y} * args.width;
    float* sums = Base::Sums(args, block.x, block.y);
    for (int column = thread; column <= args.width; column += Base::kThreads) {
      for (int f = 0; f < args.features; ++f) {
        float* at = sums + int64_t{f} * (args.width + 1) + column;
        float sum = *at;
        for (int i = 0; i < rows; ++i) {
          const float value =
              column < args.width ? Widen(v[(row + i) * args.row_stride + column]) : 1.0f;
          sum += shared.tile.phi[i][f] * value;
        }
        *at = sum;
      }
    }
  }
};

// The queries: a block is eight rows of a head of an image.
template <typename T>
struct PerformerQueriesProgram : PerformerBlock<T> {
  using Args = PerformerRows;
  using Base = PerformerBlock<T>;
  struct Thread {};
  struct Shared {
    FeatureTile<T> tile;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    const int tiles = (args.longest + Base::kRows - 1) / Base::kRows;
    return {int64_t{args.images} * tiles, args.heads};
  }
  LONGVIEW_HD static int64_t ImageOf(const Args& args, Block block) {
    return block.x / ((args.longest + Base::kRows - 1) / Base::kRows);
  }
  LONGVIEW_HD static int TileOf(const Args& args, Block block) {
    return static_cast<int>(block.x % ((args.longest + Base::kRows - 1) / Base::kRows));
  }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return TileOf(args, block) < Base::Tiles(args, ImageOf(args, block)) ? 5 : 0;
  }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const int64_t image = ImageOf(args, block);
    const int rows = Base::TileRows(args, image, TileOf(args, block));
    const int64_t row = Base::TileRow(args, image, TileOf(args, block));
    switch (phase) {
      case 0:
        return shared.tile.Load(args, args.q, row, rows, block.y, thread);
      case 1:
        return shared.tile.Project(args, rows, thread);
      case 2:
        return shared.tile.Top(args, rows, thread);
      case 3:
        return shared.tile.Weigh(args, rows, true, 0.0f, thread);
      default:
        return Write(args, image, row, rows, block.y, thread, shared);
    }
  }

 private:
  LONGVIEW_HD static void Write(const Args& args, int64_t image, int64_t row, int rows, int head,
                                int thread, const Shared& shared) {
    if (thread >= args.width) return;
    const float* sums = Base::Sums(args, image, head);
    T* out = static_cast<T*>(args.out) + int64_t{head} * args.width + thread;
    for (int i = 0; i < rows; ++i) {
      float sum = 0, weight = 0;
      for (int f = 0; f < args.features; ++f) {
        const float* of_feature = sums + int64_t{f} * (args.width + 1);
        sum += shared.tile.phi[i][f] * of_feature[thread];
        weight += shared.tile.phi[i][f] * of_feature[args.width];
      }
      Narrow(sum / weight, out + (row + i) * args.out_row_stride);
    }
  }
};

}  // namespace longview::kernels::cuda
