// Norms of maps: tokens on their way to their places, columns of a map.
#pragma once

#include <cmath>

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/row_moments.h"
#include "kernels/cuda/vision/maps_api.h"

namespace longview::kernels::cuda {

// A block per token.
template <typename T>
struct MapTokensProgram {
  using Args = MapTokens;
  static constexpr int kThreads = kRowThreads;

  struct Thread {};
  struct Shared {
    RowMoments moments;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.tokens, 1}; }
  LONGVIEW_HD static int Phases(const Args& args, Block) {
    return args.norm.gamma == nullptr ? 1 : RowMoments::kPhases + 1;
  }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const auto at = [&](int i) {
      return Widen(static_cast<const T*>(args.y)[block.x * args.width + i]) + args.bias[i];
    };
    if (args.norm.gamma == nullptr) return Write(args, block.x, thread, at);
    if (phase < RowMoments::kPhases) return shared.moments.Phase(phase, thread, args.width, at);
    const NormedRow normed(args.norm, shared.moments, args.width);
    Write(args, block.x, thread, [&](int i) { return normed.At(i, at(i)); });
  }

 private:
  template <class Value>
  LONGVIEW_HD static void Write(const Args& args, int64_t token, int thread, Value&& value) {
    float* const x = args.x + int64_t{args.rows[token]} * args.width;
    for (int i = thread; i < args.width; i += kThreads) x[i] = value(i) + Position(args, token, i);
  }
  LONGVIEW_HD static float Position(const Args& args, int64_t token, int i) {
    if (args.down == nullptr) return 0;
    const int half = args.width / 2;
    return i < half ? args.down[int64_t{args.down_rows[token]} * half + i]
                    : args.across[int64_t{args.across_rows[token]} * half + i - half];
  }
};

// A block per image and run of columns, a thread per column: rows are added one after the other.
template <typename T>
struct ColumnNormProgram {
  using Args = ColumnNorms;
  static constexpr int kThreads = 128;
  struct Thread {};
  struct Shared {};

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {args.images, (args.width + kThreads - 1) / kThreads};
  }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 1; }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int, int thread, Thread&, Shared&) {
    const int column = block.y * kThreads + thread;
    if (column >= args.width) return;
    const int64_t first = args.begins[block.x], rows = args.begins[block.x + 1] - first;
    const T* in = static_cast<const T*>(args.in) + first * args.width + column;
    T* out = static_cast<T*>(args.out) + int64_t{args.out_begins[block.x]} * args.width + column;
    float sum = 0, squares = 0;
    for (int64_t r = 0; r < rows; ++r) sum += Widen(in[r * args.width]);
    const float mean = sum / static_cast<float>(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const float distance = Widen(in[r * args.width]) - mean;
      squares += distance * distance;
    }
    const float factor = 1.0f / sqrtf(squares / static_cast<float>(rows) + args.eps);
    for (int64_t r = 0; r < rows; ++r) {
      Narrow((Widen(in[r * args.width]) - mean) * factor, out + r * args.width);
    }
  }
};

}  // namespace longview::kernels::cuda
