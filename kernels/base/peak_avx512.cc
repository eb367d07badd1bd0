#include "kernels/base/peak_rate.h"

// `steps` rounds of one instruction on 24 full registers, none of which waits for another.
// Assembly, because a compiler may drop or reorder sums that nobody reads; a macro, because the
// instruction is part of its text.
#define LONGVIEW_ROUNDS(instruction, steps)                                                       \
  asm volatile(                                                                                   \
      "vpxord %%zmm31, %%zmm31, %%zmm31\n\t"                                                      \
      "1:\n\t"                                                                                    \
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t" instruction      \
      " %%zmm31, %%zmm31, %%zmm\\r\n\t"                                                           \
      ".endr\n\t"                                                                                 \
      "dec %0\n\t"                                                                                \
      "jnz 1b\n\t"                                                                                \
      : "+r"(steps)                                                                               \
      :                                                                                           \
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",  \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", \
        "xmm21", "xmm22", "xmm23", "xmm31", "cc")

namespace longview::kernels {

double PeakLoopAvx512(int steps) {
  const double operations = steps * 24.0 * 32.0;
  LONGVIEW_ROUNDS("vfmadd231ps", steps);
  return operations;
}

double PeakLoopAvx512Bf16(int steps) {
  const double operations = steps * 24.0 * 64.0;
  LONGVIEW_ROUNDS("vdpbf16ps", steps);
  return operations;
}

}  // namespace longview::kernels
