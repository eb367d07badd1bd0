// The sum of one number per thread of a block, in one fixed order: 16 runs of neighbours, then the
// runs. Three phases: Give, Gather, Total; every thread may ask for the total.
#pragma once

namespace longview::kernels::cuda {

inline constexpr int kRowThreads = 128;

struct RowSum {
  static constexpr int kRuns = 16;

  float given[kRowThreads];
  float runs[kRuns];

  LONGVIEW_HD void Give(int thread, float value) { given[thread] = value; }
  LONGVIEW_HD void Gather(int thread) {
    if (thread >= kRuns) return;
    float sum = 0;
    for (int i = 0; i < kRowThreads / kRuns; ++i) sum += given[thread * (kRowThreads / kRuns) + i];
    runs[thread] = sum;
  }
  LONGVIEW_HD float Total() const {
    float sum = 0;
    for (int i = 0; i < kRuns; ++i) sum += runs[i];
    return sum;
  }
};

}  // namespace longview::kernels::cuda
