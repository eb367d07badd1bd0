// Writes into the cache's blocks: rows of the window, and projected rows of finished segments.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/row_moments.h"
#include "kernels/cuda/decoder_rows/token_api.h"
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
    to[CacheElement(args.cache, place, i)] = from[row * args.row_stride + i];
  }
};

// ElementProgram<LoadElements<T>>.
template <typename T>
struct LoadElements {
  using Args = LoadRows;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.rows; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.cache.heads * args.cache.dim; }
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const CacheRowPlace place = args.places[row];
    if (place.block < 0) return;
    static_cast<T*>(args.keys)[row * args.row_stride + column] =
        static_cast<const T*>(args.cache.k)[CacheElement(args.cache, place, column)];
  }
};

// ElementProgram<StateElements<T>>.
template <typename T>
struct StateElements {
  using Args = StateRows;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.count; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.width; }
  LONGVIEW_HD static void Element(const Args& args, int64_t i, int column) {
    float* const state = args.list[i].state + args.shift + column;
    T* const row = static_cast<T*>(args.rows) + args.list[i].row * args.row_stride + column;
    if (args.stores != 0) {
      *state = Widen(*row);
    } else {
      Narrow(*state, row);
    }
  }
};

// Value `value` of page row `row`, channel i of all heads: the mean of the segment's sums.
LONGVIEW_HD inline float SegmentMean(const SegmentSums& sums, int dim, int64_t row, int value,
                                     int i) {
  const PoolRun& run = sums.runs[row / sums.rank];
  const float* const state = run.state + (run.shifted != 0 ? sums.shift : 0);
  const int columns = sums.state_columns;
  const int column = sums.column0 + i / dim * sums.rank + static_cast<int>(row % sums.rank);
  const float sum = state[2 * columns + (int64_t{value} * columns + column) * dim + i % dim];
  const float total = state[columns + column];
  return total == 0.0f ? 0.0f : sum / total;
}

LONGVIEW_HD inline int64_t PageCount(const SegmentSums& sums) {
  return int64_t{sums.segments} * sums.rank;
}

// A page before its norm.
template <typename T>
LONGVIEW_HD inline float PageValue(const PageRows& args, int64_t row, int value, int i) {
  return SegmentMean(args.sums, args.cache.dim, row, value, i);
}

template <typename T>
LONGVIEW_HD inline float PageValue(const LinearPages& args, int64_t row, int value, int i) {
  const int column = value * args.cache.heads * args.cache.dim + i;
  return Widen(static_cast<const T*>(args.y)[row * args.row_stride + column]) + args.bias[column];
}

LONGVIEW_HD inline int64_t PagesOf(const PageRows& args) { return PageCount(args.sums); }
LONGVIEW_HD inline int64_t PagesOf(const LinearPages& args) { return args.rows; }

// A block per page row, for its keys or its values. `PageArgs` is PageRows or LinearPages.
template <typename PageArgs, typename T>
struct PageProgram {
  using Args = PageArgs;
  static constexpr int kThreads = kRowThreads;

  struct Thread {};
  struct Shared {
    RowMoments moments;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {PagesOf(args), 2}; }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return args.places[block.x].block < 0 ? 0 : RowMoments::kPhases + 1;
  }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    if (phase == RowMoments::kPhases) return Write(args, block, thread, shared.moments);
    shared.moments.Phase(phase, thread, Width(args),
                         [&](int i) { return PageValue<T>(args, block.x, block.y, i); });
  }

 private:
  LONGVIEW_HD static int Width(const Args& args) { return args.cache.heads * args.cache.dim; }

  LONGVIEW_HD static void Write(const Args& args, Block block, int thread,
                                const RowMoments& moments) {
    const NormedRow normed(args.norm, moments, Width(args));
    T* const to = static_cast<T*>(block.y == 0 ? args.cache.k : args.cache.v);
    for (int i = thread; i < Width(args); i += kThreads) {
      Narrow(normed.At(i, PageValue<T>(args, block.x, block.y, i)),
             to + CacheElement(args.cache, args.places[block.x], i));
    }
  }
};

// ElementProgram<MeanElements<T>>.
template <typename T>
struct MeanElements {
  using Args = SegmentMeans;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return PageCount(args.sums); }
  LONGVIEW_HD static int Columns(const Args& args) { return args.heads * args.dim; }
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    if (args.places[row].block < 0) return;
    Narrow(SegmentMean(args.sums, args.dim, row, 0, column),
           static_cast<T*>(args.out) + row * Columns(args) + column);
  }
};

}  // namespace longview::kernels::cuda
