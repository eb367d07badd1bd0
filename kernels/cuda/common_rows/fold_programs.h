// The small products of folded global rows (rows_api.h): key projections folded into vectors,
// their scores with every token, values projected from means.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/rows_api.h"

namespace longview::kernels::cuda {

LONGVIEW_HD inline int FoldColumns(const FoldShape& shape) { return shape.count * shape.heads; }

// A block per column and 128 channels of its vector; a thread per channel.
struct FoldKeysProgram {
  using Args = FoldKeys;
  static constexpr int kThreads = 128;
  struct Thread {};
  struct Shared {};

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    const FoldShape& shape = args.shape;
    return {int64_t{shape.sequences} * FoldColumns(shape), (shape.width + kThreads - 1) / kThreads};
  }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 1; }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int, int thread, Thread&, Shared&) {
    const FoldShape& shape = args.shape;
    const int channel = block.y * kThreads + thread;
    if (channel >= shape.width) return;
    const int64_t head = block.x % shape.heads, row = block.x / shape.heads;
    const float* q = args.queries + row * shape.width + head * shape.dim;
    const float* keys = args.weight + head * shape.dim * shape.width + channel;
    float sum = 0;
    for (int d = 0; d < shape.dim; ++d) sum += q[d] * args.scale * keys[int64_t{d} * shape.width];
    args.vectors[block.x * shape.width + channel] = sum;
  }
};

// Dots of 16 rows with up to 4 vectors: 8 threads per row, each every 8th channel, then their sums
// in order.
struct DotTile {
  static constexpr int kThreads = 128;
  static constexpr int kRows = 16;
  static constexpr int kVectors = 4;
  static constexpr int kParts = kThreads / kRows;

  float parts[kRows][kParts][kVectors];

  // `row` is this thread's row, null where there is none.
  LONGVIEW_HD void Give(int thread, const float* row, const float* vectors, int count, int width) {
    const int part = thread % kParts;
    float sums[kVectors] = {};
    if (row != nullptr) {
      for (int i = part; i < width; i += kParts) {
        const float value = row[i];
        for (int v = 0; v < kVectors; ++v) {
          if (v < count) sums[v] += value * vectors[int64_t{v} * width + i];
        }
      }
    }
    for (int v = 0; v < kVectors; ++v) parts[thread / kParts][part][v] = sums[v];
  }
  LONGVIEW_HD float Total(int row, int vector) const {
    float sum = 0;
    for (int part = 0; part < kParts; ++part) sum += parts[row][part][vector];
    return sum;
  }
};

// Programs that are rounds of such tiles: in the first phase of a round all threads give their
// parts of the dots, in the second they take the totals. `Dots` has Args, GridOf, Rounds, Give and
// Take.
template <typename Dots>
struct DotProgram {
  using Args = typename Dots::Args;
  static constexpr int kThreads = DotTile::kThreads;
  struct Thread {};
  struct Shared {
    DotTile tile;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return Dots::GridOf(args); }
  LONGVIEW_HD static int Phases(const Args& args, Block) { return 2 * Dots::Rounds(args); }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    if (phase % 2 == 0) {
      Dots::Give(args, block, phase / 2, thread, shared.tile);
    } else {
      Dots::Take(args, block, phase / 2, thread, shared.tile);
    }
  }
};

// A block per 16 tokens of a sequence; a round per 4 columns.
struct FoldScoresDots {
  using Args = FoldScores;

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {(args.longest + DotTile::kRows - 1) / DotTile::kRows, args.shape.sequences};
  }
  LONGVIEW_HD static int Rounds(const Args& args) {
    return (FoldColumns(args.shape) + DotTile::kVectors - 1) / DotTile::kVectors;
  }
  LONGVIEW_HD static void Give(const Args& args, Block block, int round, int thread,
                               DotTile& tile) {
    const int width = args.shape.width, columns = FoldColumns(args.shape);
    const int first = round * DotTile::kVectors;
    const int64_t t = Token(args, block, thread / DotTile::kParts);
    const float* row = t < args.ends[block.y] ? args.x + t * width : nullptr;
    const float* vectors = args.vectors + (int64_t{block.y} * columns + first) * width;
    tile.Give(thread, row, vectors, Vectors(args, round), width);
  }
  LONGVIEW_HD static void Take(const Args& args, Block block, int round, int thread,
                               const DotTile& tile) {
    const int row = thread / DotTile::kVectors, vector = thread % DotTile::kVectors;
    const int64_t t = Token(args, block, row);
    if (row >= DotTile::kRows || vector >= Vectors(args, round) || t >= args.ends[block.y]) return;
    args.scores[t * FoldColumns(args.shape) + round * DotTile::kVectors + vector] =
        tile.Total(row, vector);
  }

 private:
  LONGVIEW_HD static int64_t Token(const Args& args, Block block, int row) {
    return args.begins[block.y] + block.x * DotTile::kRows + row;
  }
  LONGVIEW_HD static int Vectors(const Args& args, int round) {
    const int left = FoldColumns(args.shape) - round * DotTile::kVectors;
    return left < DotTile::kVectors ? left : DotTile::kVectors;
  }
};
using FoldScoresProgram = DotProgram<FoldScoresDots>;

// A block per column; a round per 16 channels of its head.
template <typename T>
struct FoldValuesDots {
  using Args = FoldValues;

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {int64_t{args.shape.sequences} * FoldColumns(args.shape), 1};
  }
  LONGVIEW_HD static int Rounds(const Args& args) {
    return (args.shape.dim + DotTile::kRows - 1) / DotTile::kRows;
  }
  LONGVIEW_HD static void Give(const Args& args, Block block, int round, int thread,
                               DotTile& tile) {
    const FoldShape& shape = args.shape;
    const int d = round * DotTile::kRows + thread / DotTile::kParts;
    const float* row =
        d < shape.dim ? args.weight + Channel(args, block, d) * shape.width : nullptr;
    tile.Give(thread, row, args.means + block.x * shape.width, 1, shape.width);
  }
  LONGVIEW_HD static void Take(const Args& args, Block block, int round, int thread,
                               const DotTile& tile) {
    const FoldShape& shape = args.shape;
    const int d = round * DotTile::kRows + thread;
    if (thread >= DotTile::kRows || d >= shape.dim) return;
    const int64_t global = block.x / shape.heads, channel = Channel(args, block, d);
    Narrow(tile.Total(thread, 0) + args.bias[channel],
           static_cast<T*>(args.out) + args.out_rows[global] * int64_t{shape.width} + channel);
  }

 private:
  LONGVIEW_HD static int64_t Channel(const Args& args, Block block, int d) {
    return block.x % args.shape.heads * args.shape.dim + d;
  }
};
template <typename T>
using FoldValuesProgram = DotProgram<FoldValuesDots<T>>;

}  // namespace longview::kernels::cuda
