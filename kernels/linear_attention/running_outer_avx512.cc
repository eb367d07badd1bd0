// RunningOuter for AVX-512: a token's two vectors take two of 32 registers.
#include "kernels/span/simd_avx512.h"

namespace longview::kernels {
namespace {

constexpr int kGroupTokens = 8;

}  // namespace
}  // namespace longview::kernels

#include "kernels/linear_attention/running_outer_body.h"

namespace longview::kernels {

void RunOuterHeadAvx512(const OuterHead& head) { RunOuterHead(head); }

}  // namespace longview::kernels
