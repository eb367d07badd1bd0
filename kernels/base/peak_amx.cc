#include "kernels/base/peak_rate.h"
#include "kernels/base/tile_config.h"

namespace longview::kernels {

double PeakLoopAmx(int steps) {
  const double operations = steps * 4.0 * 16 * 16 * 32 * 2;
  // The compiler's intrinsics do not name all the memory they read; a full operand does.
  asm volatile(
      "ldtilecfg %[config]\n\t"
      ".irp t,0,1,2,3,4,5,6,7\n\t"
      "tilezero %%tmm\\t\n\t"
      ".endr\n\t"
      "1:\n\t"
      "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
      "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
      "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
      "tdpbf16ps %%tmm7, %%tmm5, %%tmm3\n\t"
      "dec %[steps]\n\t"
      "jnz 1b\n\t"
      "tilerelease\n\t"
      : [steps] "+r"(steps)
      : [config] "m"(kFullTiles)
      : "cc", "memory");
  return operations;
}

}  // namespace longview::kernels
