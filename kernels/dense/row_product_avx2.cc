// Row products for AVX2: 4 rows x 16 outputs in 8 registers, one row x 64 in 8.
#include "kernels/span/simd_avx2.h"

namespace longview::kernels {
namespace {

constexpr int kManyRows = 4, kManyWidth = 1;

inline __m256 LowHalf(__m256 pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
}
inline __m256 HighHalf(__m256 pairs) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(pairs), upper));
}
inline V16 LowHalves(V16 pairs) { return {LowHalf(pairs.a), LowHalf(pairs.b)}; }
inline V16 HighHalves(V16 pairs) { return {HighHalf(pairs.a), HighHalf(pairs.b)}; }

}  // namespace
}  // namespace longview::kernels

#include "kernels/dense/row_product_body.h"

namespace longview::kernels {

const RowProductOps kAvx2RowProduct = {MultiplyUnit<FloatPanel>, MultiplyUnit<PairPanel>};

}  // namespace longview::kernels
