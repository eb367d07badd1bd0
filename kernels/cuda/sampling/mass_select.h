// The key at which a list's items, the largest keys first, first have a wanted mass together: the
// k-th largest if each weighs one, the cut of nucleus sampling if each weighs its probability.
//
// The key is found four bits at a time. A round has two phases: every thread adds up its items'
// mass by their next four bits, then sixteen threads add up the threads'. Which four bits to go on
// with, every thread decides for itself when it begins what comes next.
#pragma once

#include <cstdint>

namespace longview::kernels::cuda {

// Larger for larger numbers; both zeros' is one. REQUIRES: not NaN.
LONGVIEW_HD inline uint64_t OrderedKey(double x) {
  const auto bits = __builtin_bit_cast(uint64_t, x + 0.0);
  constexpr uint64_t kSign = uint64_t{1} << 63;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// A thread's knowledge of the cut: the same in all of a block.
struct MassCut {
  double wanted;
  double above;  // Mass of larger keys.
  uint64_t key;  // Bits of the cut's key found so far; all in the end.
};

template <int kThreads>
struct MassSelect {
  static constexpr int kBins = 16;
  static constexpr int kRounds = 16;
  static constexpr int kPhases = 2 * kRounds;

  double parts[kBins][kThreads];
  double totals[kBins];

  // One phase of a thread. `each(f)` calls f(key, mass) for all of the thread's items.
  // REQUIRES: `cut` has what is wanted when the first begins.
  template <class Each>
  LONGVIEW_HD void Phase(int phase, int thread, MassCut& cut, Each&& each) {
    if (phase % 2 != 0) return Total(thread);
    const int round = phase / 2;
    if (round == 0) {
      cut.above = 0;
      cut.key = 0;
    } else {
      Choose(cut);
    }
    for (int bin = 0; bin < kBins; ++bin) parts[bin][thread] = 0;
    const int shift = 60 - 4 * round;
    each([&](uint64_t key, double mass) {
      if (round > 0 && key >> (shift + 4) != cut.key) return;
      parts[key >> shift & 15][thread] += mass;
    });
  }

  // Completes the cut. REQUIRES: all phases are over; some item has mass.
  LONGVIEW_HD void Finish(MassCut& cut) const { Choose(cut); }

 private:
  LONGVIEW_HD void Total(int thread) {
    if (thread >= kBins) return;
    double sum = 0;
#pragma unroll 4
    for (int i = 0; i < kThreads; ++i) sum += parts[thread][i];
    totals[thread] = sum;
  }

  // The last bin with mass where rounding leaves the wanted mass out of reach.
  LONGVIEW_HD void Choose(MassCut& cut) const {
    int chosen = -1;
    for (int bin = kBins - 1; bin >= 0; --bin) {
      if (!(totals[bin] > 0)) continue;
      if (chosen >= 0) cut.above += totals[chosen];
      chosen = bin;
      if (cut.above + totals[bin] >= cut.wanted) break;
    }
    cut.key = cut.key << 4 | static_cast<uint64_t>(chosen < 0 ? 0 : chosen);
  }
};

}  // namespace longview::kernels::cuda
