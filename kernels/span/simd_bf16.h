// bfloat16 next to the sixteen floats of simd_avx512.h: rounding, pair products, packing of
// bfloat16 panels. Included by files compiled with AVX512-BF16 only.
#pragma once

#include "kernels/span/simd_avx512.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {
namespace {

// Weights as bfloat16 in the first half of their row; sums take them unrounded.
struct Bf16Weights {
  static V16 Exp(V16 x) { return Exp2Coarse(x); }
  static void Put(float* scores, int panel, V16 p) {
    const __m256bh rounded = _mm512_cvtneps_pbh(p.v);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(scores) + panel,
                        reinterpret_cast<const __m256i&>(rounded));
  }
};

// Two products per lane: the pairs of a word times the pairs of sixteen words.
struct PairProduct {
  static V16 MultiplyAdd(V16 word, V16 words, V16 sum) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<const __m512bh&>(word.v),
                             reinterpret_cast<const __m512bh&>(words.v))};
  }
};

// Columns [d, d + 32) of one row as sixteen pairs; columns from `size` on and row -1 are zeros.
inline V16 LoadPairs(const void* data, bool bfloat16, int64_t row, int64_t stride, int d,
                     int size) {
  if (row < 0 || d >= size) return Zero();
  const int64_t at = row * stride + d;
  if (bfloat16) {
    const uint32_t bits = size - d >= 32 ? ~0u : (1u << (size - d)) - 1;
    const auto* p = static_cast<const uint16_t*>(data) + at;
    return {_mm512_castsi512_ps(_mm512_maskz_loadu_epi16(bits, p))};
  }
  const auto* p = static_cast<const float*>(data) + at;
  const int upper = size - d - 16;
  const V16 high = upper > 0 ? LoadFirst(p + 16, upper) : Zero();
  const __m512bh pairs = _mm512_cvtne2ps_pbh(high.v, LoadFirst(p, size - d).v);
  return {reinterpret_cast<const __m512&>(pairs)};
}

// Sixteen pairs (a[i], b[i]) of two half rows of 32 columns: columns 0..15 or 16..31.
inline V16 InterleaveHalf(V16 a, V16 b, bool upper) {
  const __m512i x = _mm512_castps_si512(a.v), y = _mm512_castps_si512(b.v);
  const __m256i low = upper ? _mm512_extracti64x4_epi64(x, 1) : _mm512_castsi512_si256(x);
  const __m256i high = upper ? _mm512_extracti64x4_epi64(y, 1) : _mm512_castsi512_si256(y);
  const __m512i shifted = _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
  return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_cvtepu16_epi32(low), shifted))};
}

void PackBf16Keys(const PackWork& work) {
  float* k = reinterpret_cast<float*>(work.k_block);
  const int words = work.padded_dk / 2;
  for (int key = 0; key < kBlockKeys; key += 16) {
    float* panel = k + key * words;
    for (int d = 0; d < work.padded_dk; d += 32) {
      V16 tile[16];
      for (int i = 0; i < 16; ++i) {
        tile[i] = LoadPairs(work.k, work.from_bfloat16, work.rows[key + i], work.k_row_stride, d,
                            work.dk);
      }
      Transpose(tile);
      for (int i = 0; i < 16; ++i) Store(panel + (d / 2 + i) * 16, tile[i]);
    }
  }
}

void PackBf16Values(const PackWork& work) {
  float* v = reinterpret_cast<float*>(work.v_block);
  const int columns = work.padded_dv / 16;
  for (int key = 0; key < kBlockKeys; key += 2) {
    float* pair = v + (key / 32 * columns * 16 + key % 32 / 2) * 16;
    for (int d = 0; d < work.padded_dv; d += 32) {
      const V16 a =
          LoadPairs(work.v, work.from_bfloat16, work.rows[key], work.v_row_stride, d, work.dv);
      const V16 b =
          LoadPairs(work.v, work.from_bfloat16, work.rows[key + 1], work.v_row_stride, d, work.dv);
      Store(pair + d / 16 * 256, InterleaveHalf(a, b, false));
      Store(pair + (d / 16 + 1) * 256, InterleaveHalf(a, b, true));
    }
  }
}

void PackBf16(const PackWork& work) {
  PackBf16Keys(work);
  PackBf16Values(work);
}

}  // namespace
}  // namespace longview::kernels
