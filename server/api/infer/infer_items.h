// Splits the tensors of one inference request into the items a model runs.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "server/api/infer/infer_parameters.h"
#include "server/api/infer/tensor_decode.h"

namespace longview::server {

// The facts of a request that are known before its items are built.
struct ItemShape {
  int64_t items = 0;           // n
  bool from_text = false;      // text, not token ids
  int64_t tokens = 0;          // T of input_ids; 0 with text
  bool scores = false;         // Generators: the prompt is scored, nothing is generated.
  int64_t decoder_tokens = 0;  // D of decoder_input_ids.
};

bool IsImageTask(models::Task task);

// Checks which inputs the task needs together and that they agree in n and T.
// INVALID_ARGUMENT names input, shape and limit.
absl::StatusOr<ItemShape> MeasureItems(const std::vector<InputTensor>& inputs,
                                       const models::ModelInfo& info, int max_items);

// One models::Request per item, `tensors` and `typed` left to the caller.
//
// keep_padding: trailing zeros of attention_mask stay as masked tokens, so that outputs per
// token have the shape of the input. Otherwise they are cut: rows then differ in length.
// REQUIRES: MeasureItems accepted the inputs.
absl::StatusOr<std::vector<models::Request>> BuildItems(const std::vector<InputTensor>& inputs,
                                                        const models::ModelInfo& info,
                                                        const InferParameters& parameters,
                                                        bool keep_padding);

}  // namespace longview::server
