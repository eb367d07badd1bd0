// The inputs of routes that embed: texts or token ids.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "longview/v1/text.pb.h"
#include "nlohmann/json.hpp"

namespace longview::server {

// OpenAI allows as many.
inline constexpr size_t kMaxEmbeddingInputs = 2048;

// Adds one request like `like` for each input: a string, strings, token ids or lists of token ids;
// {"text": string} is a string, too. Takes the texts. INVALID_ARGUMENT names `field`, and the place
// in it.
absl::Status ReadEmbedInputs(nlohmann::json& inputs, const std::string& field,
                             const longview::v1::EmbedRequest& like,
                             std::vector<longview::v1::EmbedRequest>& out);

// One text of them.
absl::Status ReadEmbedText(nlohmann::json& text, const std::string& field,
                           const longview::v1::EmbedRequest& like,
                           std::vector<longview::v1::EmbedRequest>& out);

}  // namespace longview::server
