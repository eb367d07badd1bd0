// Attention of global tokens: full attention over their sequence through the query_global,
// key_global and value_global projections (HuggingFace _compute_global_attn_output_from_hidden).
#pragma once

#include <cstdint>
#include <span>

#include "models/longformer/encoder_buffers.h"
#include "models/longformer/layer_plan.h"
#include "models/longformer/weights.h"

namespace longview::models {

// Overwrites the rows of buffers.z that belong to the plan's global rows; reads x and input.
// `roles`: one byte per row of x, 0 = masked.
//
// Folded: with u = Wk^T q per head, the scores of a token are x . u (the key bias adds the same
// to every token and drops out of the softmax) and the output is Wv (sum p x) + bv: no product
// over all tokens. Unfolded: projected keys and values, full attention split at fixed slots.
void AttendGlobal(const EncoderContext& context, const LongformerLayer& layer,
                  const LayerPlan& plan, std::span<const uint8_t> roles,
                  const EncoderBuffers& buffers);

// The keys and values that unfolded global rows see, of the rows of the plan's unfolded groups:
// AttendGlobal does this first; who reads a document in pieces does it piece by piece, and gives
// AttendGlobal plans without those groups.
void ProjectGlobalKeys(const EncoderContext& context, const LongformerLayer& layer,
                       const LayerPlan& plan, const EncoderBuffers& buffers);

}  // namespace longview::models
