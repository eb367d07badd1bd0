// Projected keys and values of segments: the running softmax means of a pass's rows, and what is
// written to the cache when a segment ends.
//
// Definition: Zhu et al. 2021, section 3.2, with LN_G after the mean as in the published code.
// Every segment is summed token by token in fp32, whether it arrives whole or one token at a
// time, so that where prefill is cut, or a fork goes on, changes no bit.
#pragma once

#include <vector>

#include "kernels/cache/cache_step.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/pass_buffers.h"
#include "models/transformer_ls/pass_layout.h"

namespace longview::models {

// Reused from layer to layer.
struct PageLists {
  std::vector<kernels::PoolState> states;
  std::vector<size_t> closing;  // Pieces that end their segment, in order.
};

// Reads scores, qkv and (kBlocks) x of the layer; updates the open segments' sums in the cache and
// writes finished segments, both forms in kBlocks. Throws what LibTorch throws.
void WritePages(const LsContext& context, int layer, const LsPassLayout& layout,
                const LsBuffers& buffers, const kernels::CacheStep& step, PageLists& lists);

}  // namespace longview::models
