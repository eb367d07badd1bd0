// Arithmetic peak of one core: what a kernel's speed is a share of, and what decides between
// fp32 and bf16 products.
#pragma once

#include "kernels/base/cpu_features.h"

namespace longview::kernels {

// GFLOP/s of a loop of multiply-adds on registers alone: the best of a few runs, about a
// millisecond in all. kScalar and a variant this CPU lacks give 0. Thread-safe.
double PeakGflops(Isa isa);

// Register-only multiply-add loops that PeakGflops times, compiled for their instruction set only.
// Each does `steps` rounds of independent multiply-adds, enough to hide their latency, and returns
// the operations done. REQUIRES: the CPU has the instruction set.
double PeakLoopAvx2(int steps);
double PeakLoopAvx512(int steps);
double PeakLoopAvx512Bf16(int steps);
double PeakLoopAmx(int steps);

}  // namespace longview::kernels
