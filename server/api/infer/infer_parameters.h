// Request parameters of the Open Inference Protocol.
//
// Strings, numbers or booleans; numbers and booleans may come as strings; lists are a JSON
// list in a string, or one plain string.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"
#include "models/model.h"

namespace longview::server {

struct InferParameters {
  std::optional<bool> truncate;
  std::vector<std::string> global_tokens;
  std::string aggregation;
  std::string pooling;
  std::optional<bool> normalize;
  std::optional<std::string> prompt, prompt_name;
  std::optional<int64_t> dimensions;
  std::string truncation_direction;
  int top_k = 0;
  int max_answer_tokens = 0;
  std::optional<float> score_threshold;
  int max_detections = 0;
  std::optional<absl::Duration> timeout;                // Set only if above 0, as in Triton.
  std::optional<models::GenerationOptions> generation;  // Generators only, and always.
};

using ParameterMap = google::protobuf::Map<std::string, inference::InferParameter>;

// INVALID_ARGUMENT for values of the wrong kind and for names that `task` does not know; the
// message lists those it knows.
absl::StatusOr<InferParameters> ReadParameters(const ParameterMap& parameters, models::Task task);

}  // namespace longview::server
