// Int8 products for AVX2: activations and weights widened to 16 bits, whose products are added in
// pairs. The 8-bit form of the instruction (vpmaddubsw) saturates, which would make sums inexact.
#include <immintrin.h>

#include "kernels/dense/int8_product.h"
#include "kernels/dense/int8_rows_body.h"

namespace longview::kernels {
namespace {

// Outputs [0, 4 N) of `w` for R rows. A register holds two partial sums of four outputs each.
template <int R, int N>
void Tile(const int8_t* w, const int16_t* x, int64_t columns, int32_t* sums) {
  static_assert(N % 2 == 0);
  __m256i sum[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) sum[r][n] = _mm256_setzero_si256();
  }
#pragma GCC unroll 2
  for (int64_t i = 0; i < columns; i += kInt8Quad, w += kInt8Unit * kInt8Quad) {
    __m256i weight[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      weight[n] =
          _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w + n * 16)));
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const __m256i quad = _mm256_castpd_si256(
          _mm256_broadcast_sd(reinterpret_cast<const double*>(x + r * columns + i)));
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        sum[r][n] = _mm256_add_epi32(sum[r][n], _mm256_madd_epi16(quad, weight[n]));
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; n += 2) {
      const __m256i pairs = _mm256_hadd_epi32(sum[r][n], sum[r][n + 1]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + r * kInt8Unit + n * 4),
                          _mm256_permute4x64_epi64(pairs, 0xd8));
    }
  }
}

// Few rows read the weight in wide strips, many keep more sums in registers.
template <int R>
void Rows(const int8_t* unit, const int16_t* x, int64_t columns, int32_t* sums) {
  constexpr int kRegisters = R == 1 ? 8 : R == 2 ? 4 : 2;
  for (int64_t o = 0; o < kInt8Unit; o += kRegisters * 4) {
    Tile<R, kRegisters>(unit + o * kInt8Quad, x, columns, sums + o);
  }
}

void Multiply(const int8_t* unit, const void* x, int64_t columns, int64_t rows, int32_t* sums) {
  const auto* row = static_cast<const int16_t*>(x);
  for (; rows >= 4; rows -= 4, row += 4 * columns, sums += 4 * kInt8Unit) {
    Rows<4>(unit, row, columns, sums);
  }
  switch (rows) {
    case 3:
      return Rows<3>(unit, row, columns, sums);
    case 2:
      return Rows<2>(unit, row, columns, sums);
    case 1:
      return Rows<1>(unit, row, columns, sums);
    default:
      return;
  }
}

}  // namespace

extern const Int8Kernels kInt8Avx2 = MakeInt8Kernels<int16_t, 0>("avx2", Multiply);

}  // namespace longview::kernels
