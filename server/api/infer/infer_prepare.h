// An inference request by tensors, checked and taken apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/calls/call_totals.h"
#include "server/api/calls/context.h"
#include "server/api/infer/infer_outputs.h"

namespace longview::server {

// The shape of the answer to a request.
struct InferFrame {
  ModelHandle model;
  std::string id;
  bool raw = false;  // Raw contents, else typed.
  OutputPlan plan;
};

struct PreparedInfer {
  InferFrame frame;
  std::vector<models::Request> items;
  std::optional<absl::Duration> timeout;
  bool pieces = false;  // A generator whose sequences can be answered piece by piece.
};

// REQUIRES: out.frame.model is set. INVALID_ARGUMENT names input, output or parameter.
absl::Status PrepareInfer(const ApiContext& context, const inference::ModelInferRequest& request,
                          PreparedInfer& out);

// Rewords a model's error about fields of the typed API in this protocol's names, with the item's
// index if there are several.
absl::Status InTensorNames(const absl::Status& status, size_t item, size_t items);

// The answer's tensors, without parameters. INVALID_ARGUMENT if it is larger than messages may
// be, INTERNAL if the model left something out.
absl::StatusOr<inference::ModelInferResponse> BuildInferResponse(
    const ApiContext& context, const InferFrame& frame, const std::vector<models::Answer>& answers);

// queue_us, compute_us, batch_items, truncated_tokens.
void AddTotals(const CallTotals& totals, inference::ModelInferResponse& response);

}  // namespace longview::server
