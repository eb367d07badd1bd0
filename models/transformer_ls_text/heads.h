// The heads of the Long Range Arena tasks: one document, or two compared by
// [z0, z1, z0 * z1, z0 - z1], through one hidden layer with ReLU.
#pragma once

#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "models/encoder/family.h"
#include "models/transformer_ls_text/buffers.h"

namespace longview::models {

// The class vector of a sequence, as the batch counts them, after the last layer: [d].
using LsClassRows = absl::FunctionRef<const float*(int sequence)>;

// `class_rows` is asked where the model has a class vector. Throws what LibTorch throws. A result's
// bits do not depend on the other items.
std::vector<HeadOutput> ComputeLsTextHeads(const LsTextContext& context, LsClassRows class_rows,
                                           std::span<const HeadInput> inputs);

}  // namespace longview::models
