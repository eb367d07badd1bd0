// Unfinished softmax sums of one query row and head: any part of a key list may be computed
// anywhere and merged.
//
// Scores are in base 2: s = score * log2(e), so that weights are powers of two. m is the largest
// s so far (-inf: no key seen), l the sum of 2^(s - m), o[Dv] the sum of 2^(s - m) * value, not
// divided by l. All float. A NaN among the scores makes l and o NaN, and the output with them.
//
// Plain functions on memory of the caller: thread-compatible.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/base/check.h"
#include "kernels/base/workspace.h"

namespace longview::kernels {

inline constexpr float kNoKey = -std::numeric_limits<float>::infinity();

// The partial states of one call, one slot per (row, head, piece); slot s is
// {m[s], l[s], o + s * o_stride}. Each o is 64-byte aligned.
struct PartialStates {
  float* m = nullptr;
  float* l = nullptr;
  float* o = nullptr;
  int o_stride = 0;  // Floats: Dv rounded up to 16.
};

inline int PartialStride(int Dv) { return (Dv + 15) / 16 * 16; }

inline size_t PartialBytes(int64_t slots, int Dv) {
  return AlignUp(slots * PartialStride(Dv) * sizeof(float)) + 2 * AlignUp(slots * sizeof(float));
}

// REQUIRES: `block` is 64-byte aligned and holds PartialBytes(slots, Dv).
inline PartialStates CarvePartials(std::byte* block, int64_t slots, int Dv) {
  PartialStates states;
  states.o_stride = PartialStride(Dv);
  states.o = reinterpret_cast<float*>(block);
  block += AlignUp(slots * states.o_stride * sizeof(float));
  states.m = reinterpret_cast<float*>(block);
  states.l = reinterpret_cast<float*>(block + AlignUp(slots * sizeof(float)));
  return states;
}

// Adds state (m, l, o) to state (*into_m, *into_l, into_o). Merging a state that has seen no
// key changes nothing. Order matters for the last bit: callers merge in ascending order.
inline void MergeState(float* into_m, float* into_l, float* into_o, float m, float l,
                       const float* o, int Dv) {
  if (m == kNoKey && l == 0.0f) return;
  const float top = *into_m > m ? *into_m : m;
  const float keep = *into_m == kNoKey ? 0.0f : std::exp2(*into_m - top);
  const float take = std::exp2(m - top);
  *into_m = top;
  *into_l = *into_l * keep + l * take;
  for (int d = 0; d < Dv; ++d) into_o[d] = into_o[d] * keep + o[d] * take;
}

// Divides by l, in place; a state that has seen no key becomes zeros.
inline void FinishState(float l, float* o, int Dv) {
  const float scale = l == 0.0f ? 0.0f : 1.0f / l;
  for (int d = 0; d < Dv; ++d) o[d] = l == 0.0f ? 0.0f : o[d] * scale;
}

}  // namespace longview::kernels
