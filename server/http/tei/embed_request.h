// The parts that requests for embeddings have in common.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/http/context.h"
#include "server/http/tei/tei_body.h"

namespace longview::server {

using EmbedListRequest = ListRequest<longview::v1::EmbedRequest>;

// An item without its text: normalize, truncate, truncation_direction, prompt_name, dimensions.
// INVALID_ARGUMENT names the field.
absl::StatusOr<longview::v1::EmbedRequest> ReadEmbedOptions(TeiBody& body);

// Adds an item with the options of `like`, and takes its text, which is called `field`.
absl::Status AddEmbedText(nlohmann::json& value, const std::string& field,
                          const longview::v1::EmbedRequest& like, EmbedListRequest& out);

}  // namespace longview::server
