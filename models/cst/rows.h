// What the encoder and the language model do with single rows, and what ends their layers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cst/buffers.h"
#include "models/layers/block_tail.h"

namespace longview::models {

// The embedding of one token, [D_e]: scaled word, position (of `conventional`), type, norm.
// `scratch` holds D_e floats.
void EmbedToken(const CstContext& context, int32_t id, int32_t position, int32_t type,
                float* scratch, float* out);

// x = the embeddings [rows, D_e] in buffers.embedded, projected. Where D_e is D there are none: x
// holds them already. Throws what LibTorch throws.
void ProjectEmbeddings(const CstContext& context, int64_t rows, const CstBuffers& buffers,
                       EncoderTimes* times);

// What the first layer reads of x, to `input`; later the layer before leaves it there.
void EnterLayers(const CstContext& context, int64_t rows, const CstBuffers& buffers);

// What follows attention in layer `layer`. A pre-norm model's last one leaves `input` as it is.
BlockTail TailOf(const CstContext& context, int layer);

}  // namespace longview::models
