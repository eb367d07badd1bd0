// Sixteen floats in two AVX registers: the same operations as simd_avx512.h. Included by
// files compiled with AVX2 only; the unnamed namespace keeps the code out of others.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace longview::kernels {
namespace {

struct V16 {
  __m256 a, b;
};

inline V16 Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void Store(float* p, V16 x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline V16 Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline V16 Broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline V16 Add(V16 x, V16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline V16 Sub(V16 x, V16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline V16 Mul(V16 x, V16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline V16 Max(V16 x, V16 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
// x * y + z
inline V16 Fma(V16 x, V16 y, V16 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}

// All-ones in the lanes whose bit of the low byte is set.
inline __m256i LaneMask(uint32_t bits) {
  const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lane),
                            lane);
}

// Lanes whose bit is clear become -inf.
inline V16 MaskScores(uint32_t bits, V16 x) {
  const __m256 none = _mm256_set1_ps(-__builtin_inff());
  return {_mm256_blendv_ps(none, x.a, _mm256_castsi256_ps(LaneMask(bits))),
          _mm256_blendv_ps(none, x.b, _mm256_castsi256_ps(LaneMask(bits >> 8)))};
}

inline bool AnyAbove(V16 x, V16 y) {
  const __m256 above =
      _mm256_or_ps(_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ));
  return _mm256_movemask_ps(above) != 0;
}

inline float MaxLane(V16 x) {
  const __m256 both = _mm256_max_ps(x.a, x.b);
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  half = _mm_max_ss(half, _mm_shuffle_ps(half, half, 1));
  return _mm_cvtss_f32(half);
}

// The first `n` floats, 0 <= n; the others zero and not read.
inline V16 LoadFirst(const float* p, int n) {
  if (n >= 16) return Load(p);
  const uint32_t bits = (1u << n) - 1;
  const __m256 a = _mm256_maskload_ps(p, LaneMask(bits));
  const __m256 b = n > 8 ? _mm256_maskload_ps(p + 8, LaneMask(bits >> 8)) : _mm256_setzero_ps();
  return {a, b};
}

inline __m256 WidenBf16(__m128i half) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

inline V16 LoadFirstBf16(const uint16_t* p, int n) {
  alignas(32) uint16_t padded[16] = {};
  if (n < 16) {
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    p = padded;
  }
  return {WidenBf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          WidenBf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}

inline __m256 Exp2Half(__m256 x) {
  // The operand order lets a NaN through.
  const __m256 bounded = _mm256_max_ps(_mm256_set1_ps(-127.0f), x);
  const __m256 whole = _mm256_floor_ps(bounded);
  const __m256 f = _mm256_sub_ps(bounded, whole);
  __m256 p = _mm256_set1_ps(0.00187757677f);
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0.00898933988f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0.0558263182f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0.240153617f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0.693153073f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0.999999925f));
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23);
  const __m256 scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
  return _mm256_and_ps(scaled, _mm256_cmp_ps(x, _mm256_set1_ps(-126.0f), _CMP_NLT_UQ));
}

// 2^x for x <= 127. Relative error at most 2e-7; exactly 0 below -126, so for -inf too: sums
// never meet subnormal weights, which cost an assist each. NaN stays NaN.
inline V16 Exp2(V16 x) { return {Exp2Half(x.a), Exp2Half(x.b)}; }

inline void Transpose8(__m256* r0, __m256* r1, __m256* r2, __m256* r3, __m256* r4, __m256* r5,
                       __m256* r6, __m256* r7) {
  const __m256 a0 = _mm256_unpacklo_ps(*r0, *r1), a1 = _mm256_unpackhi_ps(*r0, *r1);
  const __m256 a2 = _mm256_unpacklo_ps(*r2, *r3), a3 = _mm256_unpackhi_ps(*r2, *r3);
  const __m256 a4 = _mm256_unpacklo_ps(*r4, *r5), a5 = _mm256_unpackhi_ps(*r4, *r5);
  const __m256 a6 = _mm256_unpacklo_ps(*r6, *r7), a7 = _mm256_unpackhi_ps(*r6, *r7);
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
  const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
  const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
  const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
  *r0 = _mm256_permute2f128_ps(b0, b4, 0x20);
  *r1 = _mm256_permute2f128_ps(b1, b5, 0x20);
  *r2 = _mm256_permute2f128_ps(b2, b6, 0x20);
  *r3 = _mm256_permute2f128_ps(b3, b7, 0x20);
  *r4 = _mm256_permute2f128_ps(b0, b4, 0x31);
  *r5 = _mm256_permute2f128_ps(b1, b5, 0x31);
  *r6 = _mm256_permute2f128_ps(b2, b6, 0x31);
  *r7 = _mm256_permute2f128_ps(b3, b7, 0x31);
}

// rows[i] lane j <-> rows[j] lane i: the four 8 x 8 quarters, two of them swapped.
inline void Transpose(V16 (&rows)[16]) {
  Transpose8(&rows[0].a, &rows[1].a, &rows[2].a, &rows[3].a, &rows[4].a, &rows[5].a, &rows[6].a,
             &rows[7].a);
  Transpose8(&rows[0].b, &rows[1].b, &rows[2].b, &rows[3].b, &rows[4].b, &rows[5].b, &rows[6].b,
             &rows[7].b);
  Transpose8(&rows[8].a, &rows[9].a, &rows[10].a, &rows[11].a, &rows[12].a, &rows[13].a,
             &rows[14].a, &rows[15].a);
  Transpose8(&rows[8].b, &rows[9].b, &rows[10].b, &rows[11].b, &rows[12].b, &rows[13].b,
             &rows[14].b, &rows[15].b);
  for (int i = 0; i < 8; ++i) {
    const __m256 upper_right = rows[i].b;
    rows[i].b = rows[i + 8].a;
    rows[i + 8].a = upper_right;
  }
}

}  // namespace
}  // namespace longview::kernels
