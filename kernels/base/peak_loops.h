// Register-only multiply-add loops, compiled for their instruction set only; peak_rate.h
// times them.
//
// Each does `steps` rounds of independent multiply-adds, enough to hide their latency, and
// returns the operations done. REQUIRES: the CPU has the instruction set.
#pragma once

namespace longview::kernels {

double PeakLoopAvx2(int steps);
double PeakLoopAvx512(int steps);
double PeakLoopAvx512Bf16(int steps);
double PeakLoopAmx(int steps);

}  // namespace longview::kernels
