// Softmax states on either side: softmax_state.h's rules with the powers of two of a machine.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/span/span_call.h"
#include "kernels/span/plan.h"

namespace longview::kernels::cuda {

inline constexpr float kLog2E = 1.44269504088896340736f;

// exp2 of a difference to a reference that may be -infinity: no key seen, so nothing to keep.
LONGVIEW_HD inline float Exp2Below(float x, float reference) {
  return x == -INFINITY ? 0.0f : exp2f(x - reference);
}

// 1 / l, or 0 for a row that saw no key.
LONGVIEW_HD inline float Share(float l) { return l == 0.0f ? 0.0f : 1.0f / l; }

// Element `d` of a row's merged state, its pieces in ascending order; every thread of a row does
// the same sums of m and l, so none waits for another.
LONGVIEW_HD inline float MergedElement(const SpanCall& call, const Merge& merge, int d) {
  float m = -INFINITY, l = 0.0f, o = 0.0f;
  for (int p = 0; p < merge.parts; ++p) {
    const int64_t slot = merge.part0 + static_cast<int64_t>(p) * merge.stride;
    const float part_m = call.part_m[slot];
    if (part_m == -INFINITY && call.part_l[slot] == 0.0f) continue;
    const float top = m > part_m ? m : part_m;
    const float keep = Exp2Below(m, top);
    const float take = Exp2Below(part_m, top);
    l = l * keep + call.part_l[slot] * take;
    o = o * keep + call.part_o[slot * call.part_stride + d] * take;
    m = top;
  }
  return l == 0.0f ? 0.0f : o * Share(l) + 0.0f;
}

}  // namespace longview::kernels::cuda
