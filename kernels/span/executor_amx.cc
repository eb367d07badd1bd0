// bfloat16 kernel for AMX: tile products, softmax in AVX-512.
#include "kernels/base/tile_config.h"
#include "kernels/span/simd_bf16.h"

namespace longview::kernels {
namespace {
constexpr int kWidth = 4;

// The tile unit. GCC's intrinsics name neither the memory nor the order they need, so that
// stores feeding a tile load may be dropped: assembly with a memory clobber says both.
struct AmxTiles {
  template <int T>
  static void Load(const std::byte* p, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  static void Store(std::byte* p, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  static void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(T));
  }
  // T += A * B
  template <int T, int A, int B>
  static void Multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(T), "i"(A), "i"(B));
  }
};

void LoadTileConfig() { asm volatile("ldtilecfg %0" : : "m"(kFullTiles) : "memory"); }

void ReleaseTiles() { asm volatile("tilerelease" : : : "memory"); }

}  // namespace
}  // namespace longview::kernels

#include "kernels/span/amx_ops.h"
#include "kernels/span/float_pack.h"
#include "kernels/span/group_products.h"

namespace longview::kernels {

const VectorOps kAmxOps = {true,          AddBlock<AmxOps<AmxTiles, Bf16Weights>>,
                           Dots,          PackBf16,
                           PackFloatKeys, LoadTileConfig,
                           ReleaseTiles};

}  // namespace longview::kernels
