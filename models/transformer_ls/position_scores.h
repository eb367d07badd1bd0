// The position parts of decode scores, (q / sqrt(dh) + r_r) . R_i and q / sqrt(dh) . Rc_i: each
// token against whole tables once per layer, all tokens sharing what is read. The executor reads
// them as Added biases; its own Dotted products are made for tiles of many rows, which share the
// packing of a table.
#pragma once

#include "models/transformer_ls/context.h"
#include "models/transformer_ls/pass_buffers.h"
#include "models/transformer_ls/pass_layout.h"

namespace longview::models {

// Fills window_scores and segment_scores for the decode group from its rows of qkv.
void ScorePositions(const LsContext& context, int layer, const LsPassLayout& layout,
                    const LsBuffers& buffers);

}  // namespace longview::models
