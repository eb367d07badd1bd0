// Performer's attention as block programs. A thread is a feature while rows become features, and a
// channel while values are summed.
#pragma once

#include <cmath>

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/vision/performer_api.h"

namespace longview::kernels::cuda {

// A run of rows of one head.
struct RowRun {
  int64_t row;
  int rows;
  int head;
};

// Features of up to kRows rows of one head at a time, in four phases; the first three find their
// projections' largest.
template <typename T>
struct FeatureTile {
  static constexpr int kRows = 8;
  static constexpr int kTopPhases = 3;
  static constexpr int kPhases = 4;

  float x[kRows][kMostPerformerFeatures];
  float phi[kRows][kMostPerformerFeatures];
  float tops[kRows];     // Largest projection.
  float squares[kRows];  // |x|^2

  // `image_top`: the image's largest projection, for keys; null: queries, which use their own.
  LONGVIEW_HD void Phase(const PerformerRows& args, const void* data, const RowRun& run,
                         const float* image_top, int phase, int thread) {
    switch (phase) {
      case 0:
        return Load(args, data, run, thread);
      case 1:
        return Project(args, run.rows, thread);
      case 2:
        return Top(args, run.rows, thread);
      default:
        return Weigh(args, run.rows, image_top, thread);
    }
  }

 private:
  LONGVIEW_HD void Load(const PerformerRows& args, const void* data, const RowRun& run,
                        int thread) {
    if (thread >= args.width) return;
    const T* at = static_cast<const T*>(data) + int64_t{run.head} * args.width + thread;
    for (int i = 0; i < run.rows; ++i) x[i][thread] = Widen(at[(run.row + i) * args.row_stride]);
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

  LONGVIEW_HD void Weigh(const PerformerRows& args, int rows, const float* image_top, int thread) {
    constexpr float kFloor = 1e-4f;
    if (thread >= args.features) return;
    const float root = sqrtf(static_cast<float>(args.width));
    const float norm = 1.0f / sqrtf(static_cast<float>(args.features));
    for (int i = 0; i < rows; ++i) {
      const float shift =
          squares[i] / (2.0f * root) + (image_top == nullptr ? tops[i] : *image_top);
      phi[i][thread] = norm * (expf(phi[i][thread] - shift) + kFloor);
    }
  }
};

// The common part of the three kernels: a block is a head of an image and walks its rows in tiles.
template <typename T>
struct PerformerBlock {
  using Args = PerformerRows;
  using Tile = FeatureTile<T>;
  static constexpr int kThreads = kMostPerformerFeatures;
  static constexpr int kRows = Tile::kRows;
  struct Thread {
    float top;  // Largest projection: so far, or of the image.
  };
  struct Shared {
    Tile tile;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.images, args.heads}; }
  LONGVIEW_HD static int Tiles(const Args& args, int64_t image) {
    return (args.offsets[image + 1] - args.offsets[image] + kRows - 1) / kRows;
  }
  LONGVIEW_HD static RowRun RunOf(const Args& args, int64_t image, int tile, int head) {
    const int64_t row = args.offsets[image] + int64_t{tile} * kRows;
    const int64_t left = args.offsets[image + 1] - row;
    return {row, static_cast<int>(left < kRows ? left : kRows), head};
  }
  LONGVIEW_HD static float* Sums(const Args& args, int64_t image, int head) {
    return args.sums + (image * args.heads + head) * args.features * (args.width + 1);
  }
};

// tops[image, head]; -infinity where an image has no rows.
template <typename T>
struct PerformerTopsProgram : PerformerBlock<T> {
  using Base = PerformerBlock<T>;
  using typename Base::Args;
  using typename Base::Shared;
  using typename Base::Thread;
  static constexpr int kTilePhases = Base::Tile::kTopPhases;

  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return kTilePhases * Base::Tiles(args, block.x) + 1;
  }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread& mine,
                                Shared& shared) {
    const int tile = phase / kTilePhases;
    if (thread == 0 && phase % kTilePhases == 0)
      mine.top = phase == 0 ? -__builtin_inff() : Largest(args, block, tile, mine, shared);
    if (tile == Base::Tiles(args, block.x)) {
      if (thread == 0) args.tops[block.x * args.heads + block.y] = mine.top;
      return;
    }
    const RowRun run = Base::RunOf(args, block.x, tile, block.y);
    shared.tile.Phase(args, args.k, run, nullptr, phase % kTilePhases, thread);
  }

 private:
  // With the tops of the tile before.
  LONGVIEW_HD static float Largest(const Args& args, Block block, int tile, const Thread& mine,
                                   const Shared& shared) {
    float top = mine.top;
    const int rows = Base::RunOf(args, block.x, tile - 1, block.y).rows;
    for (int i = 0; i < rows; ++i) top = fmaxf(top, shared.tile.tops[i]);
    return top;
  }
};

// sums[image, head]: phi(k)^T v and the sum of phi(k), rows in order.
template <typename T>
struct PerformerKeysProgram : PerformerBlock<T> {
  using Base = PerformerBlock<T>;
  using typename Base::Args;
  using typename Base::Shared;
  using typename Base::Thread;
  static constexpr int kTilePhases = Base::Tile::kPhases + 1;

  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return kTilePhases * Base::Tiles(args, block.x) + 1;
  }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread& mine,
                                Shared& shared) {
    if (phase == 0) return Clear(args, block, thread, mine);
    const RowRun run = Base::RunOf(args, block.x, (phase - 1) / kTilePhases, block.y);
    const int step = (phase - 1) % kTilePhases;
    if (step == Base::Tile::kPhases) return Add(args, block, run, thread, shared);
    shared.tile.Phase(args, args.k, run, &mine.top, step, thread);
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

  LONGVIEW_HD static void Add(const Args& args, Block block, const RowRun& run, int thread,
                              const Shared& shared) {
    const T* v = static_cast<const T*>(args.v) + int64_t{block.y} * args.width;
    float* sums = Base::Sums(args, block.x, block.y);
    for (int column = thread; column <= args.width; column += Base::kThreads) {
      for (int f = 0; f < args.features; ++f) {
        float* at = sums + int64_t{f} * (args.width + 1) + column;
        float sum = *at;
        for (int i = 0; i < run.rows; ++i) {
          const float value =
              column < args.width ? Widen(v[(run.row + i) * args.row_stride + column]) : 1.0f;
          sum += shared.tile.phi[i][f] * value;
        }
        *at = sum;
      }
    }
  }
};

// The queries: a block is one tile of a head of an image.
template <typename T>
struct PerformerQueriesProgram : PerformerBlock<T> {
  using Base = PerformerBlock<T>;
  using typename Base::Args;
  using typename Base::Shared;
  using typename Base::Thread;

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {int64_t{args.images} * MostTiles(args), args.heads};
  }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return TileOf(args, block) < Base::Tiles(args, ImageOf(args, block)) ? Base::Tile::kPhases + 1
                                                                         : 0;
  }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const int64_t image = ImageOf(args, block);
    const RowRun run = Base::RunOf(args, image, TileOf(args, block), block.y);
    if (phase == Base::Tile::kPhases) return Write(args, image, run, thread, shared);
    shared.tile.Phase(args, args.q, run, nullptr, phase, thread);
  }

 private:
  LONGVIEW_HD static int MostTiles(const Args& args) {
    return (args.longest + Base::kRows - 1) / Base::kRows;
  }
  LONGVIEW_HD static int64_t ImageOf(const Args& args, Block block) {
    return block.x / MostTiles(args);
  }
  LONGVIEW_HD static int TileOf(const Args& args, Block block) {
    return static_cast<int>(block.x % MostTiles(args));
  }

  LONGVIEW_HD static void Write(const Args& args, int64_t image, const RowRun& run, int thread,
                                const Shared& shared) {
    if (thread >= args.width) return;
    const float* sums = Base::Sums(args, image, run.head);
    T* out = static_cast<T*>(args.out) + int64_t{run.head} * args.width + thread;
    for (int i = 0; i < run.rows; ++i) {
      float sum = 0, weight = 0;
      for (int f = 0; f < args.features; ++f) {
        const float* of_feature = sums + int64_t{f} * (args.width + 1);
        sum += shared.tile.phi[i][f] * of_feature[thread];
        weight += shared.tile.phi[i][f] * of_feature[args.width];
      }
      Narrow(sum / weight, out + (run.row + i) * args.out_row_stride);
    }
  }
};

// Performer's three programs as one call of a table; see program_runner.h.
template <class Runner>
Status RunPerformer(Stream* stream, const PerformerRows& args) {
  Status status = RunTyped<Runner, PerformerTopsProgram>(stream, args);
  if (status == 0) status = RunTyped<Runner, PerformerKeysProgram>(stream, args);
  if (status == 0) status = RunTyped<Runner, PerformerQueriesProgram>(stream, args);
  return status;
}

template <class Runner>
constexpr PerformerApi PerformerTable() {
  return {.run = RunPerformer<Runner>};
}

}  // namespace longview::kernels::cuda
