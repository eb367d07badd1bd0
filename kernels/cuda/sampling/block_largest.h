// The largest of a block's numbers, and whose it is: the lowest id of equal ones. Threads give
// theirs in one phase; in the next, each finds the largest for itself.
#pragma once

#include <cmath>
#include <cstdint>

namespace longview::kernels::cuda {

struct Scored {
  double score = -INFINITY;
  int32_t id = INT32_MAX;

  LONGVIEW_HD bool Before(const Scored& other) const {
    return score != other.score ? score > other.score : id < other.id;
  }
};

template <int kThreads>
struct BlockLargest {
  double scores[kThreads];
  int32_t ids[kThreads];

  LONGVIEW_HD void Give(int thread, const Scored& own) {
    scores[thread] = own.score;
    ids[thread] = own.id;
  }
  LONGVIEW_HD Scored Take() const {
    Scored best;
#pragma unroll 4
    for (int i = 0; i < kThreads; ++i) {
      const Scored other{scores[i], ids[i]};
      if (other.Before(best)) best = other;
    }
    return best;
  }
};

}  // namespace longview::kernels::cuda
