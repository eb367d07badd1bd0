// An instruction set's part of RunningOuter: all tokens of one head of one sequence. Internal to
// kernels/outer. Plain data only: the files behind it have their own compiler flags.
#pragma once

#include <cstdint>

namespace longview::kernels {

inline constexpr int kOuterTokens = 8;  // Tokens that share one pass over the state.

struct OuterHead {
  const float* q = nullptr;  // [tokens, width], rows row_stride apart, and so on.
  const float* k = nullptr;
  const float* v = nullptr;
  const float* g = nullptr;
  int64_t row_stride = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t tokens = 0;
  int64_t before = 0;
  int width = 0;
  int rows = 0;
  int width_lanes = 0;  // Padded to 16.
  int row_lanes = 0;
  float scale = 1;
  int activation = 0;             // OuterActivation.
  const float* packed = nullptr;  // [width][row_lanes]
  float* keys = nullptr;          // [width][row_lanes]
  float* values = nullptr;        // [rows][width_lanes]
  float* scratch = nullptr;       // kOuterTokens * 2 * (row_lanes + width_lanes)
};

using OuterHeadKernel = void (*)(const OuterHead& head);

void RunOuterHeadAvx2(const OuterHead& head);
void RunOuterHeadAvx512(const OuterHead& head);

}  // namespace longview::kernels
