// One block of CvT*-LS over a ragged batch: x + Attn(LN(x)), then x + MLP(LN(x)).
#pragma once

#include "models/cvt_ls/buffers.h"
#include "models/layers/stopwatch.h"

namespace longview::models {

// Updates buffers.x, block after block of the stage. Throws what LibTorch throws.
// `times` may be null.
void RunCvtBlock(const CvtContext& context, size_t stage, int block, const CvtStagePlan& plan,
                 const CvtBuffers& buffers, EncoderTimes* times);

}  // namespace longview::models
