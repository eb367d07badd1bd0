// Vector kernels that this CPU can run, and the fastest of them per element type.
#pragma once

#include <string_view>

namespace longview::kernels {

// Kernel variants, one source file each. kScalar is the reference.
enum class Isa : int {
  kScalar = 0,
  kAvx2 = 1,        // fp32
  kAvx512 = 2,      // fp32
  kAvx512Bf16 = 3,  // bf16 products (vdpbf16ps), fp32 sums
  kAmxBf16 = 4,     // bf16 tiles, fp32 sums
};

std::string_view IsaName(Isa isa);

// Can the CPU and the kernel run it? AMX asks Linux for permission once per process.
bool IsaSupported(Isa isa);

// The variant for fp32 calls: the widest supported.
Isa BestFloatIsa();

// The variant for bf16 calls, chosen by measured rate: AMX where it runs; vdpbf16ps only
// where it beats fp32 FMA (Zen 4: twice; Sapphire Rapids: half). Else an fp32 variant, which
// reads bf16 and computes in fp32. Measured once per process, a few milliseconds.
Isa BestBf16Isa();

// Does this CPU multiply bf16 faster than fp32 (AMX, or a full-rate vdpbf16ps)?
bool Bf16IsNative();

// Does this CPU have an int8 dot product beside AVX-512 (VNNI)?
bool Int8IsNative();

}  // namespace longview::kernels
