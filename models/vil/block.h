// One block pair of Vision Longformer over a ragged batch: attention and MLP, each with its
// LayerNorm in front and a plain residual (spec: Z + Attn(LN(Z)), Z + MLP(LN(Z))).
#pragma once

#include "models/encoder/work.h"
#include "models/vil/buffers.h"

namespace longview::models {

// Updates buffers.x, block after block of the stage. Throws what LibTorch throws.
// `times` may be null.
void RunVilBlock(const VilContext& context, size_t stage, int block, const VilStagePlan& plan,
                 const VilBuffers& buffers, EncoderTimes* times);

// Keys and values of the attentions that project them first (Linformer, spatial reduction), into
// buffers.keys. REQUIRES: buffers.qkv (Linformer) or LN(x) in buffers.rows (reduction) of the
// block.
void ProjectByPositions(const VilContext& context, const VilStage& stage, const VilBlock& block,
                        const VilStagePlan& plan, const VilBuffers& buffers);
void ProjectByReduction(const VilContext& context, const VilStage& stage, const VilBlock& block,
                        const VilStagePlan& plan, const VilBuffers& buffers);

}  // namespace longview::models
