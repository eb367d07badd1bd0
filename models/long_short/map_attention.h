// Long-short attention over a ragged batch of feature maps, from projected rows to outputs:
//
//   P    = softmax over the map's tokens of scores     per head and landmark, class rows left out
//   K'   = LN(P k),  V' = LN(P v)                      all heads of a landmark together
//   o    = softmax over [class keys | K' | window of k] of q, times values
//   o_c  = the same over [its own key | outputs o, or all keys of the map] for class rows
//
// Free functions over memory of the caller; they run on the caller's thread and the pool's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/layers/compute_context.h"
#include "models/layers/weight_loader.h"
#include "models/long_short/map_plan.h"

namespace longview::models {

// What a model hands over. "T" is an element of the compute type.
struct LongShortMapRows {
  std::byte* qkv = nullptr;        // T [rows, 3C]; keys and values normalised as the model does it.
  std::byte* z = nullptr;          // T [rows, C], written.
  float* scores = nullptr;         // [rows, h r] of the projection; class rows are not read.
  float* value_scores = nullptr;   // The same where values have a projection of their own.
  std::byte* landmarks = nullptr;  // LongShortBytes
  std::byte* workspace = nullptr;  // LongShortWorkspace bytes
};

// Bytes of pooled keys and values, and of the landmarks made of them.
size_t LongShortBytes(const LongShortPattern& pattern, const LongShortPlan& plan,
                      const ComputeContext& context);

size_t LongShortWorkspace(const LongShortPattern& pattern, const LongShortPlan& plan,
                          const ComputeContext& context);

// `landmark_norm` may be null: landmarks as they are. `tables` are those of plan.tokens.
void RunLongShort(const LongShortPattern& pattern, const LongShortPlan& plan,
                  const Norm* landmark_norm, std::span<const kernels::Table> tables,
                  const ComputeContext& context, const LongShortMapRows& rows);

}  // namespace longview::models
