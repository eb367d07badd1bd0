// Luna's heads: Long Range Arena classification and matching, masked LM, and the three classes of
// sequence classification of the RoBERTa-style model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "models/encoder/family.h"
#include "models/luna/buffers.h"

namespace longview::models {

// The active rows of P of one sequence after the last layer, [count, d].
struct LunaProjectedRows {
  const float* rows;
  int64_t count;
};
// Of a sequence as the batch counts them.
using LunaProjectedOf = absl::FunctionRef<LunaProjectedRows(int sequence)>;

// Whether the head reads rows of P.
bool ReadsProjected(const LunaConfig& config);

// `projected` is asked where the head reads rows of P. Throws what LibTorch throws. A result's bits
// do not depend on the other items.
std::vector<HeadOutput> ComputeLunaHeads(const LunaContext& context, LunaProjectedOf projected,
                                         std::span<const HeadInput> inputs);

// Floats of logits that the item's head computes.
int64_t LunaLogitFloats(const LunaConfig& config, const EncoderItem& item);

}  // namespace longview::models
