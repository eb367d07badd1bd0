// Float kernel for AVX-512: 6 rows x 64 keys in 24 registers of sums.
#include "kernels/span/simd_avx512.h"

namespace longview::kernels {
namespace {
constexpr int kWidth = 4;
}  // namespace
}  // namespace longview::kernels

#include "kernels/span/float_pack.h"
#include "kernels/span/group_products.h"

namespace longview::kernels {

const VectorOps kAvx512Ops = {false,  AddBlock<FloatOps>, Dots, PackFloat, PackFloatKeys, nullptr,
                              nullptr};

}  // namespace longview::kernels
