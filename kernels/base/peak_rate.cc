#include "kernels/base/peak_rate.h"

#include <time.h>

namespace longview::kernels {
namespace {

// CPU time of this thread: neighbours on a busy machine do not change it.
double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

using PeakLoop = double (*)(int steps);

PeakLoop LoopOf(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return nullptr;
    case Isa::kAvx2:
      return PeakLoopAvx2;
    case Isa::kAvx512:
      return PeakLoopAvx512;
    case Isa::kAvx512Bf16:
      return PeakLoopAvx512Bf16;
    case Isa::kAmxBf16:
      return PeakLoopAmx;
  }
  return nullptr;
}

}  // namespace

double PeakGflops(Isa isa) {
  const PeakLoop loop = LoopOf(isa);
  if (loop == nullptr || !IsaSupported(isa)) return 0.0;
  constexpr int kRuns = 8, kSteps = 10000;
  double best = 0.0;
  for (int run = 0; run < kRuns; ++run) {
    const double start = ThreadSeconds();
    const double operations = loop(kSteps);
    const double seconds = ThreadSeconds() - start;
    if (seconds > 0.0 && operations / seconds > best) best = operations / seconds;
  }
  return best * 1e-9;
}

}  // namespace longview::kernels
