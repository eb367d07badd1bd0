// The heads of the Long Range Arena tasks: one document, or two compared by
// [z0, z1, z0 * z1, z0 - z1], through one hidden layer with ReLU.
#pragma once

#include <span>
#include <vector>

#include "models/encoder/family.h"
#include "models/encoder/pass.h"
#include "models/transformer_ls_text/weights.h"

namespace longview::models {

// `class_rows` gives the class vector of a sequence, [1, d], where the model has one. Throws what
// LibTorch throws. A result's bits do not depend on the other items.
std::vector<HeadOutput> ComputeLsTextHeads(const LsTextConfig& config, const LsTextWeights& weights,
                                           const kernels::ParallelFor& pool,
                                           std::span<const HeadInput> inputs, ExtraOf class_rows);

}  // namespace longview::models
