#include "tests/kernels/support/emulated_amx.h"

#include "kernels/span/simd_bf16.h"

namespace longview::kernels {
namespace {
constexpr int kWidth = 4;
}  // namespace
}  // namespace longview::kernels

#include "kernels/span/amx_ops.h"
#include "kernels/span/float_pack.h"
#include "kernels/span/group_products.h"

namespace longview::kernels {
namespace {

constexpr int kTileUnits = 8;
thread_local uint32_t tiles[kTileUnits][16][16];  // 16 rows of 64 bytes.

float Bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

struct EmulatedTiles {
  template <int T>
  static void Load(const std::byte* p, int64_t stride) {
    for (int r = 0; r < 16; ++r) __builtin_memcpy(tiles[T][r], p + r * stride, 64);
  }
  template <int T>
  static void Store(std::byte* p, int64_t stride) {
    for (int r = 0; r < 16; ++r) __builtin_memcpy(p + r * stride, tiles[T][r], 64);
  }
  template <int T>
  static void Zero() {
    __builtin_memset(tiles[T], 0, sizeof(tiles[T]));
  }
  // T[m][n] += A[m][2k] * B[k][2n] + A[m][2k + 1] * B[k][2n + 1], pairs in one word.
  template <int T, int A, int B>
  static void Multiply() {
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        float sum = Bits(tiles[T][m][n]);
        for (int k = 0; k < 16; ++k) {
          const uint32_t a = tiles[A][m][k], b = tiles[B][k][n];
          sum += Bits(a << 16) * Bits(b << 16);
          sum += Bits(a & 0xffff0000u) * Bits(b & 0xffff0000u);
        }
        tiles[T][m][n] = __builtin_bit_cast(uint32_t, sum);
      }
    }
  }
};

}  // namespace

namespace testing {

const VectorOps kEmulatedAmxOps = {
    true,   AddBlock<AmxOps<EmulatedTiles, Bf16Weights>>, Dots, PackBf16, PackFloatKeys, nullptr,
    nullptr};

}  // namespace testing
}  // namespace longview::kernels
