// Output tensors of generators, made from the sequences of their answers.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "server/api/infer/infer_outputs.h"

namespace longview::server {

// Bytes of the output token_ids.
size_t TokenRowBytes(const std::vector<models::Answer>& answers);

// text BYTES [s], token_ids INT64 [s, L] filled on the right with the pad token, num_tokens INT64
// [s], scores FP32 [s]: s sequences, item by item. REQUIRES: one of these kinds.
models::HostTensor JoinSequences(const PlannedOutput& output, const models::ModelInfo& info,
                                 const std::vector<models::Answer>& answers);

// token_logprobs FP32 [1, T] of the only item's prompt, the first 0. INTERNAL if the answer has
// no prompt, or not every token has its log-probability.
absl::StatusOr<models::HostTensor> JoinTokenLogprobs(const PlannedOutput& output,
                                                     const std::vector<models::Answer>& answers);

}  // namespace longview::server
