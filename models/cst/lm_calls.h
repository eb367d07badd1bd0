// Attention of the language model's passes over cached blocks.
#pragma once

#include "kernels/span/executor.h"
#include "models/cst/lm_buffers.h"

namespace longview::models {

// A source of cached blocks as far as measuring needs it.
kernels::Source CstBlocksKind(const CstContext& context);

// Tokens over their slices: `cached` blocks of the window and, if `fresh`, the pass's own rows.
// `layer` may be null for measuring. REQUIRES: what `cached` points to outlives the call.
void MakePagedTokenCall(const CstContext& context, const CstLayer* layer, const CstBuffers& buffers,
                        const kernels::Source& cached, bool fresh, CstCall& call);

// Finished slices over `cached` ones.
void MakePagedSliceCall(const CstContext& context, const CstBuffers& buffers,
                        const kernels::Source& cached, CstCall& call);

}  // namespace longview::models
