// The inputs of routes that embed: texts or token ids.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"
#include "nlohmann/json.hpp"
#include "server/api/calls/copies.h"

namespace longview::server {

// OpenAI allows as many.
inline constexpr size_t kMaxEmbeddingInputs = 2048;

// One request like `like` for each input: a string, strings, token ids or lists of token ids;
// {"text": string} is a string, too. Takes the texts. INVALID_ARGUMENT names `field`, and the place
// in it.
absl::StatusOr<std::vector<longview::v1::EmbedRequest>> ReadEmbedInputs(
    nlohmann::json& inputs, const std::string& field, const Like<longview::v1::EmbedRequest>& like);

// One text of them, into its request.
absl::Status ReadEmbedText(nlohmann::json& text, const std::string& field,
                           longview::v1::EmbedRequest& out);

// A request like `like` of one text.
absl::StatusOr<std::vector<longview::v1::EmbedRequest>> ReadLoneEmbedText(
    nlohmann::json& text, const std::string& field, const Like<longview::v1::EmbedRequest>& like);

}  // namespace longview::server
