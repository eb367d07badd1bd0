// Arithmetic peak of one core: what a kernel's speed is a share of, and what decides between
// fp32 and bf16 products.
#pragma once

#include "kernels/base/cpu_features.h"

namespace longview::kernels {

// GFLOP/s of a loop of multiply-adds on registers alone: the best of a few runs, about a
// millisecond in all. kScalar and a variant this CPU lacks give 0. Thread-safe.
double PeakGflops(Isa isa);

}  // namespace longview::kernels
