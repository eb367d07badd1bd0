// Products of a decode step: few rows by a weight, and queries by tables of positions. Both are
// bound by reading; every sum is one fixed chain, so a row's bits do not depend on batch mates.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/decoder_rows/token_api.h"
#include "kernels/span/plan.h"

namespace longview::kernels::cuda {

// Elements that are read in one go.
template <typename T>
struct alignas(16) ProductPack {
  static constexpr int kElements = 16 / sizeof(T);
  T values[kElements];
};

// A block takes eight outputs of eight rows; 16 threads share an output's inputs, a pack each in
// turn, so that they read neighbouring bytes together.
template <typename T>
struct ProductProgram {
  using Args = RowProducts;
  using Pack = ProductPack<T>;
  static constexpr int kThreads = 128;
  static constexpr int kRows = 8;
  static constexpr int kParts = 16;
  static constexpr int kOuts = kThreads / kParts;

  struct Thread {};
  struct Shared {
    float parts[kOuts][kRows][kParts];
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {(args.out + kOuts - 1) / kOuts, static_cast<int>((args.rows + kRows - 1) / kRows)};
  }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 2; }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const int64_t row0 = int64_t{block.y} * kRows;
    const int64_t left = args.rows - row0;
    const int rows = left < kRows ? static_cast<int>(left) : kRows;
    if (phase == 0) {
      const int64_t out = block.x * kOuts + thread / kParts;
      if (out < args.out) {
        Add(args, row0, rows, out, thread % kParts, shared.parts[thread / kParts]);
      }
      return;
    }
    const int64_t out = block.x * kOuts + thread / kRows;
    const int row = thread % kRows;
    if (thread >= kOuts * kRows || out >= args.out || row >= rows) return;
    float sum = 0;
    for (int part = 0; part < kParts; ++part) sum += shared.parts[thread / kRows][row][part];
    Narrow(sum, static_cast<T*>(args.y) + (row0 + row) * args.out + out);
  }

 private:
  LONGVIEW_HD static void Add(const Args& args, int64_t row0, int rows, int64_t out, int part,
                              float (*to)[kParts]) {
    const T* const weight = static_cast<const T*>(args.weight) + out * args.in;
    const T* const x = static_cast<const T*>(args.x) + row0 * args.in;
    float sums[kRows] = {};
    const bool packs = args.in % Pack::kElements == 0;
    for (int64_t i = int64_t{part} * Pack::kElements; i < args.in; i += kParts * Pack::kElements) {
      const Pack w = Read(weight, i, args.in, packs);
      for (int row = 0; row < kRows; ++row) {
        if (row >= rows) continue;
        const Pack value = Read(x + row * args.in, i, args.in, packs);
        for (int e = 0; e < Pack::kElements; ++e) {
          sums[row] += Widen(w.values[e]) * Widen(value.values[e]);
        }
      }
    }
    for (int row = 0; row < rows; ++row) to[row][part] = sums[row];
  }

  LONGVIEW_HD static Pack Read(const T* from, int64_t i, int64_t in, bool packs) {
    if (packs) return *reinterpret_cast<const Pack*>(from + i);
    Pack pack = {};
    for (int e = 0; e < Pack::kElements; ++e) {
      if (i + e < in) pack.values[e] = from[i + e];
    }
    return pack;
  }
};

// A block takes 128 entries of one head's table for one row; a thread is an entry.
template <typename T>
struct PositionProgram {
  using Args = PositionScores;
  static constexpr int kThreads = 128;

  struct Thread {};
  struct Shared {
    float q[kMaxHeadDim];
  };

  LONGVIEW_HD static int Tiles(const Args& args) { return (args.most + kThreads - 1) / kThreads; }
  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {int64_t{args.rows} * Tiles(args), args.heads};
  }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    const auto tile = static_cast<int>(block.x % Tiles(args));
    return tile * kThreads < args.limits[block.x / Tiles(args)] ? 2 : 0;
  }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const int64_t row = block.x / Tiles(args);
    const int64_t head = block.y;
    if (phase == 0) {
      if (thread >= args.dim) return;
      const int64_t at = head * args.dim + thread;
      const float q = Widen(static_cast<const T*>(args.q)[row * args.q_stride + at]);
      shared.q[thread] = args.scale * (args.add == nullptr ? q : q + args.add[at]);
      return;
    }
    const auto entry = static_cast<int>(block.x % Tiles(args)) * kThreads + thread;
    if (entry >= args.limits[row]) return;
    const T* const from =
        static_cast<const T*>(args.table) + (head * args.table_entries + entry) * args.dim;
    float sum = 0;
    for (int d = 0; d < args.dim; ++d) sum += shared.q[d] * Widen(from[d]);
    args.scores[head * args.head_stride + row * args.row_stride + entry] = sum;
  }
};

}  // namespace longview::kernels::cuda
