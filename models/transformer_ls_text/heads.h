// The heads of the Long Range Arena tasks: one document, or two compared by
// [z0, z1, z0 * z1, z0 - z1], through one hidden layer with ReLU.
#pragma once

#include <span>
#include <vector>

#include "models/encoder/family.h"
#include "models/transformer_ls_text/encoder.h"

namespace longview::models {

// Throws what LibTorch throws. A result's bits do not depend on the other items.
std::vector<HeadOutput> ComputeLsTextHeads(const LsTextContext& context, const LsTextBatch& batch,
                                           std::span<const HeadInput> inputs);

}  // namespace longview::models
