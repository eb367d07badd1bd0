// The members of the body of POST /v1/completions, by whom they are sent, and what they say
// together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "nlohmann/json.hpp"
#include "server/http/members.h"

namespace longview::server {

// A body whose prompts are not read yet.
struct CompletionSettings {
  std::string model;
  nlohmann::json prompt;
  models::GenerationOptions options;
  std::optional<bool> truncate;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  bool has_stream_options = false;
  std::optional<int> best_of;
  std::optional<bool> echo, return_full_text;
};

// INVALID_ARGUMENT names the member. Thread-safe.
absl::StatusOr<CompletionSettings> ReadCompletionSettings(nlohmann::json& object);

// For tests.
std::vector<MemberInfo> CompletionMembers();

}  // namespace longview::server
