// Landmarks of long-short attention as rows that attention reads: a block per row, for its keys or
// its values. Zhu et al. 2021, section 3.2: one norm for all heads.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/row_moments.h"
#include "kernels/cuda/encoder_rows/encoder_api.h"

namespace longview::kernels::cuda {

template <typename T>
struct LandmarkProgram {
  using Args = LandmarkRows;
  static constexpr int kThreads = kRowThreads;

  struct Thread {};
  struct Shared {
    RowMoments moments;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {int64_t{args.sequences} * Landmarks(args), 2};
  }
  LONGVIEW_HD static int Phases(const Args& args, Block) {
    return args.norm.gamma == nullptr ? 1 : RowMoments::kPhases + 1;
  }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const int width = args.heads * args.dim;
    const auto at = [&](int i) { return At(args, block, i); };
    if (args.norm.gamma == nullptr) return Write(args, block, thread, at);
    if (phase < RowMoments::kPhases) return shared.moments.Phase(phase, thread, width, at);
    const NormedRow normed(args.norm, shared.moments, width);
    Write(args, block, thread, [&](int i) { return normed.At(i, at(i)); });
  }

 private:
  template <class Value>
  LONGVIEW_HD static void Write(const Args& args, Block block, int thread, Value&& value) {
    const int width = args.heads * args.dim;
    T* const out = static_cast<T*>(args.out) + (2 * block.x + block.y) * width;
    for (int i = thread; i < width; i += kThreads) Narrow(value(i), out + i);
  }
  LONGVIEW_HD static int Landmarks(const Args& args) {
    return args.rank + (args.own_keys == nullptr ? 0 : 1);
  }

  // Channel i of all heads side by side, before the norm.
  LONGVIEW_HD static float At(const Args& args, Block block, int i) {
    const int64_t sequence = block.x / Landmarks(args);
    const auto landmark =
        static_cast<int>(block.x % Landmarks(args)) - (Landmarks(args) - args.rank);
    if (landmark < 0) {
      const auto* own = static_cast<const T*>(block.y == 0 ? args.own_keys : args.own_values);
      return Widen(own[sequence * args.own_stride + i]);
    }
    const float* const pooled = block.y == 0 ? args.keys : args.values;
    const int64_t column = (sequence * args.heads + i / args.dim) * args.rank + landmark;
    return pooled[column * args.dim + i % args.dim];
  }
};

}  // namespace longview::kernels::cuda
