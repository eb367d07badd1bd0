// Token ids and their masks as rows of one length each.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "server/api/infer/tensor_decode.h"

namespace longview::server {

// The input of that name, or null.
const InputTensor* Find(const std::vector<InputTensor>& inputs, std::string_view name);

// The rows of input_ids `[..., T]` with attention_mask, token_type_ids and
// global_attention_mask where given. Trailing zeros of a row's attention_mask are padding and
// cut unless keep_padding. INVALID_ARGUMENT names input, row and value.
// REQUIRES: all of the same shape.
absl::StatusOr<std::vector<models::TokenInput>> ReadTokenRows(
    const std::vector<InputTensor>& inputs, bool keep_padding);

}  // namespace longview::server
