// The body of POST /v1/completions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"

namespace longview::server {

struct CompletionsRequest {
  std::string model;
  // One per prompt: its text or ids, and the same options in each. Without a task.
  std::vector<models::Request> prompts;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
};

// INVALID_ARGUMENT names the member. Which values of an option are possible is the model's to
// say. JSON values take at most `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<CompletionsRequest> ParseCompletions(std::string_view body, size_t max_prompts,
                                                    size_t max_bytes = size_t{64} << 20);

}  // namespace longview::server
