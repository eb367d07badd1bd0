// Row products for AVX-512: 6 rows x 64 outputs in 24 registers.
#include "kernels/span/simd_avx512.h"

namespace longview::kernels {
namespace {

constexpr int kManyRows = 6, kManyWidth = 4;

inline V16 LowHalves(V16 pairs) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pairs.v), 16))};
}
inline V16 HighHalves(V16 pairs) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(pairs.v), upper))};
}

}  // namespace
}  // namespace longview::kernels

#include "kernels/dense/row_product_body.h"

namespace longview::kernels {

const RowProductOps kAvx512RowProduct = {MultiplyUnit<FloatPanel>, MultiplyUnit<PairPanel>};

}  // namespace longview::kernels
