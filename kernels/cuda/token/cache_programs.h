// Writes into the cache's blocks: rows of the window, and projected rows of finished segments.
#pragma once

#include "kernels/cuda/program.h"
#include "kernels/cuda/rows/row_moments.h"
#include "kernels/cuda/token/token_api.h"
#include "kernels/cuda/typed_element.h"
#include "kernels/span/plan.h"

namespace longview::kernels::cuda {

// Element `i` of a row of all heads, from the begin of keys or values.
LONGVIEW_HD inline int64_t CacheElement(const CacheRows& cache, CacheRowPlace place, int i) {
  const int64_t cell = int64_t{place.block} * cache.heads + i / cache.dim;
  return (cell * kBlockSlots + place.slot) * cache.pitch + i % cache.dim;
}

// ElementProgram<StoreElements<T>>: keys, then values.
template <typename T>
struct StoreElements {
  using Args = StoreRows;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.rows; }
  LONGVIEW_HD static int Columns(const Args& args) { return 2 * args.cache.heads * args.cache.dim; }
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const CacheRowPlace place = args.places[row];
    if (place.block < 0) return;
    const int width = args.cache.heads * args.cache.dim;
    const bool value = column >= width;
    const int i = value ? column - width : column;
    const T* const from = static_cast<const T*>(value ? args.values : args.keys);
    T* const to = static_cast<T*>(value ? args.cache.v : args.cache.k);
    to[CacheElement(args.cache, place, i)] = from[row * width + i];
  }
};

// A block per page row, for its keys or its values.
template <typename T>
struct PageProgram {
  using Args = PageRows;
  static constexpr int kThreads = kRowThreads;

  struct Thread {};
  struct Shared {
    RowMoments moments;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {int64_t{args.segments} * args.rank, 2};
  }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return args.places[block.x].block < 0 ? 0 : RowMoments::kPhases + 1;
  }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    if (phase == RowMoments::kPhases) return Write(args, block, thread, shared.moments);
    shared.moments.Phase(phase, thread, Width(args), [&](int i) { return At(args, block, i); });
  }

 private:
  LONGVIEW_HD static int Width(const Args& args) { return args.cache.heads * args.cache.dim; }

  // The segment's mean, channel i of all heads.
  LONGVIEW_HD static float At(const Args& args, Block block, int i) {
    const PoolRun& run = args.runs[block.x / args.rank];
    const float* const state = run.state + (run.shifted != 0 ? args.shift : 0);
    const int columns = args.cache.heads * args.rank, dim = args.cache.dim;
    const auto column = i / dim * args.rank + static_cast<int>(block.x % args.rank);
    const float sum = state[2 * columns + (int64_t{block.y} * columns + column) * dim + i % dim];
    const float total = state[columns + column];
    return total > 0.0f ? sum / total : 0.0f;
  }

  LONGVIEW_HD static void Write(const Args& args, Block block, int thread,
                                const RowMoments& moments) {
    const NormedRow normed(args.norm, moments, Width(args));
    T* const to = static_cast<T*>(block.y == 0 ? args.cache.k : args.cache.v);
    for (int i = thread; i < Width(args); i += kThreads) {
      Narrow(normed.At(i, At(args, block, i)),
             to + CacheElement(args.cache, args.places[block.x], i));
    }
  }
};

}  // namespace longview::kernels::cuda
