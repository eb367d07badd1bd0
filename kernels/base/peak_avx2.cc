#include "kernels/base/peak_rate.h"

namespace longview::kernels {

double PeakLoopAvx2(int steps) {
  const double operations = steps * 12.0 * 16.0;
  // Assembly, because a compiler may drop or reorder sums that nobody reads.
  asm volatile(
      "vxorps %%xmm15, %%xmm15, %%xmm15\n\t"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "vfmadd231ps %%ymm15, %%ymm15, %%ymm\\r\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      : "+r"(steps)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm15", "cc");
  return operations;
}

}  // namespace longview::kernels
