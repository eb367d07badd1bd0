// RunningOuter for AVX2: a token's two vectors of 16 lanes take four of 16 registers.
#include "kernels/span/simd_avx2.h"

namespace longview::kernels {
namespace {

constexpr int kGroupTokens = 3;

}  // namespace
}  // namespace longview::kernels

#include "kernels/linear_attention/running_outer_body.h"

namespace longview::kernels {

void RunOuterHeadAvx2(const OuterHead& head) { RunOuterHead(head); }

}  // namespace longview::kernels
