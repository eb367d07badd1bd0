// LayerNorm's mean and variance, of a row whose numbers a block's threads share out among them:
// thread i has numbers i, i + kRowThreads and so on. Two sums of RowSum one after the other, in
// kPhases phases; in the next, every thread may ask for both.
#pragma once

#include <cmath>

#include "kernels/cuda/common_rows/row_sum.h"
#include "kernels/cuda/common_rows/rows_api.h"

namespace longview::kernels::cuda {

struct RowMoments {
  static constexpr int kPhases = 4;

  RowSum sum;
  RowSum squares;  // Squared distances to the mean.

  // `at(i)` is number i of `width`; phases 0 and 2 ask for a thread's own, each once.
  template <class At>
  LONGVIEW_HD void Phase(int phase, int thread, int width, At&& at) {
    switch (phase) {
      case 0:
        return sum.Give(thread, Add(thread, width, at));
      case 1:
        return sum.Gather(thread);
      case 2: {
        const float mean = Mean(width);
        return squares.Give(thread, Add(thread, width, [&](int i) {
                              const float distance = at(i) - mean;
                              return distance * distance;
                            }));
      }
      default:
        return squares.Gather(thread);
    }
  }

  LONGVIEW_HD float Mean(int width) const { return sum.Total() / static_cast<float>(width); }
  LONGVIEW_HD float Variance(int width) const {
    return squares.Total() / static_cast<float>(width);
  }

 private:
  template <class At>
  LONGVIEW_HD static float Add(int thread, int width, At&& at) {
    float total = 0;
    for (int i = thread; i < width; i += kRowThreads) total += at(i);
    return total;
  }
};

// The norm of numbers whose moments are known.
struct NormedRow {
  LONGVIEW_HD NormedRow(const RowNorm& norm, const RowMoments& moments, int width)
      : norm(norm),
        mean(moments.Mean(width)),
        factor(1.0f / sqrtf(moments.Variance(width) + norm.eps)) {}

  LONGVIEW_HD float At(int i, float value) const {
    return (value - mean) * factor * norm.gamma[i] + norm.beta[i];
  }

  const RowNorm& norm;
  const float mean;
  const float factor;
};

}  // namespace longview::kernels::cuda
