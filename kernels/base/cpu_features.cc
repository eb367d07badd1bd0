#include "kernels/base/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/base/peak_rate.h"

namespace longview::kernels {
namespace {

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("fma");
}

bool HasAvx512Bf16() { return HasAvx512() && __builtin_cpu_supports("avx512bf16"); }

// Tile registers are 8 KB of state per thread, so Linux hands them out on request only.
bool AskForTiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool ProbeAmxBf16() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!HasAvx512Bf16() || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & (kBf16 | kTile)) == (kBf16 | kTile) && AskForTiles();
}

// Probed once: virtual machines trap cpuid, which takes tens of microseconds.
bool HasAmxBf16() {
  static const bool has = ProbeAmxBf16();
  return has;
}

Isa MeasureBestBf16Isa() {
  if (IsaSupported(Isa::kAmxBf16)) return Isa::kAmxBf16;
  if (!IsaSupported(Isa::kAvx512Bf16)) return BestFloatIsa();
  // A bf16 kernel also rounds its weights, so an even race goes to fp32.
  constexpr double kWorthwhile = 1.2;
  const double fp32 = PeakGflops(Isa::kAvx512);
  const double bf16 = PeakGflops(Isa::kAvx512Bf16);
  return bf16 > kWorthwhile * fp32 ? Isa::kAvx512Bf16 : Isa::kAvx512;
}

}  // namespace

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512bf16";
    case Isa::kAmxBf16:
      return "amx";
  }
  return "unknown";
}

bool IsaSupported(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return HasAvx512();
    case Isa::kAvx512Bf16:
      return HasAvx512Bf16();
    case Isa::kAmxBf16:
      return HasAmxBf16();
  }
  return false;
}

Isa BestFloatIsa() {
  if (IsaSupported(Isa::kAvx512)) return Isa::kAvx512;
  if (IsaSupported(Isa::kAvx2)) return Isa::kAvx2;
  return Isa::kScalar;
}

Isa BestBf16Isa() {
  static const Isa best = MeasureBestBf16Isa();
  return best;
}

bool Bf16IsNative() {
  const Isa best = BestBf16Isa();
  return best == Isa::kAvx512Bf16 || best == Isa::kAmxBf16;
}

bool Int8IsNative() { return HasAvx512() && __builtin_cpu_supports("avx512vnni"); }

}  // namespace longview::kernels
