// Float kernel for AVX2 and FMA: 6 rows x 16 keys in 12 registers of sums.
#include "kernels/span/simd_avx2.h"

namespace longview::kernels {
namespace {
constexpr int kWidth = 1;
}  // namespace
}  // namespace longview::kernels

#include "kernels/span/float_pack.h"
#include "kernels/span/group_products.h"

namespace longview::kernels {

const VectorOps kAvx2Ops = {false,  AddBlock<FloatOps>, Dots, PackFloat, PackFloatKeys, nullptr,
                            nullptr};

}  // namespace longview::kernels
