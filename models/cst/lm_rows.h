// The language model's work on single rows, and the end of its layers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "models/cst/lm_buffers.h"
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

// Row i of biases of places, [3D]; rows past the end are the last one.
inline const float* PlaceRow(const Table& biases, int64_t i) {
  return biases.values(std::min(i, biases.rows() - 1));
}

// What follows attention in layer `layer`. A pre-norm model's last one leaves `input` as it is.
BlockTail TailOf(const CstContext& context, int layer);

}  // namespace longview::models
