// How much memory a plan takes beside its own size, for who keeps plans.
#pragma once

#include <cstddef>

#include "kernels/span/plan.h"

namespace longview::kernels {

inline size_t BytesOf(const Plan& plan) {
  const auto held = [](const auto&... arrays) {
    return ((arrays.capacity() * sizeof(arrays[0])) + ...);
  };
  return held(plan.tiles, plan.spans, plan.intervals, plan.biases, plan.items, plan.sources,
              plan.runs, plan.valid, plan.merges);
}

}  // namespace longview::kernels
