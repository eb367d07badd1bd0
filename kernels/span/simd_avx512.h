// Sixteen floats in one AVX-512 register. Included by files compiled with AVX-512 only; the
// unnamed namespace gives each its own copy, so none can end up in portable code.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace longview::kernels {
namespace {

struct V16 {
  __m512 v;
};

inline V16 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void Store(float* p, V16 a) { _mm512_storeu_ps(p, a.v); }
inline V16 Zero() { return {_mm512_setzero_ps()}; }
inline V16 Broadcast(float x) { return {_mm512_set1_ps(x)}; }
inline V16 Add(V16 a, V16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline V16 Sub(V16 a, V16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline V16 Mul(V16 a, V16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline V16 Max(V16 a, V16 b) { return {_mm512_max_ps(a.v, b.v)}; }
// a * b + c
inline V16 Fma(V16 a, V16 b, V16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }

// Lanes whose bit is clear become -inf.
inline V16 MaskScores(uint32_t bits, V16 a) {
  return {_mm512_mask_mov_ps(_mm512_set1_ps(-__builtin_inff()), static_cast<__mmask16>(bits), a.v)};
}

inline bool AnyAbove(V16 a, V16 b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ) != 0; }

inline float MaxLane(V16 a) { return _mm512_reduce_max_ps(a.v); }

// The first `n` floats, 0 <= n; the others zero and not read.
inline V16 LoadFirst(const float* p, int n) {
  const uint32_t bits = n >= 16 ? 0xffffu : (1u << n) - 1;
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>(bits), p)};
}

inline V16 LoadFirstBf16(const uint16_t* p, int n) {
  const uint32_t bits = n >= 16 ? 0xffffu : (1u << n) - 1;
  const __m256i half = _mm256_maskz_loadu_epi16(static_cast<__mmask16>(bits), p);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}

// p * 2^floor(x); exactly 0 where x < -126, so for -inf too: sums never meet subnormal
// weights, which cost an assist each. NaN stays NaN.
inline V16 ScaleByPower(__m512 p, __m512 x) {
  const __mmask16 normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return {_mm512_maskz_scalef_ps(normal, p, x)};
}

// x - floor(x), 0 for infinities.
inline __m512 Fraction(__m512 x) { return _mm512_reduce_ps(x, 0x09); }

// 2^x for x <= 127, 0 below -126. Relative error at most 2e-7.
inline V16 Exp2(V16 x) {
  const __m512 f = Fraction(x.v);
  __m512 p = _mm512_set1_ps(0.00187757677f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.00898933988f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.0558263182f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.240153617f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693153073f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.999999925f));
  return ScaleByPower(p, x.v);
}

// 2^x to 8e-5, for weights that are rounded to bfloat16 (4e-3) anyway.
inline V16 Exp2Coarse(V16 x) {
  const __m512 f = Fraction(x.v);
  __m512 p = _mm512_set1_ps(0.0780245273f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.226067149f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.695833543f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.999925219f));
  return ScaleByPower(p, x.v);
}

// rows[i] lane j <-> rows[j] lane i, for any 32-bit content.
inline void Transpose(V16 (&rows)[16]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
    t[i + 1] = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
  }
  __m512 u[16];
  for (int i = 0; i < 16; i += 4) {
    u[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 a = _mm512_shuffle_f32x4(u[i], u[i + 4], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0x88);
    const __m512 c = _mm512_shuffle_f32x4(u[i], u[i + 4], 0xdd);
    const __m512 d = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0xdd);
    rows[i].v = _mm512_shuffle_f32x4(a, b, 0x88);
    rows[i + 4].v = _mm512_shuffle_f32x4(c, d, 0x88);
    rows[i + 8].v = _mm512_shuffle_f32x4(a, b, 0xdd);
    rows[i + 12].v = _mm512_shuffle_f32x4(c, d, 0xdd);
  }
}

}  // namespace
}  // namespace longview::kernels
