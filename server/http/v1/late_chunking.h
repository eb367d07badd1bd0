// Jina's late chunking: a list of texts is one document, and each of them a chunk.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"

namespace longview::server {

// The document of `texts`, which are taken from it: one behind another, with a space where two
// would grow together, and a chunk for each. INVALID_ARGUMENT for token ids.
absl::StatusOr<longview::v1::EmbedRequest> JoinToDocument(
    std::vector<longview::v1::EmbedRequest> texts);

// An error about the document's chunks as one about the texts of `input`.
absl::Status OfLateInputs(const absl::Status& status);

}  // namespace longview::server
