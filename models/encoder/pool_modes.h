// How a request wants the rows of a document's tokens to become a vector.
// Thread-safe: pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/config/sentence_config.h"
#include "models/encoder/prepare.h"
#include "models/model.h"

namespace longview::models {

// The modes that the request or the directory names; none: the family's pooling. INVALID_ARGUMENT
// names what is no mode, and a mode that a Dense module cannot follow. REQUIRES: the request's
// pooling is neither "pooler" nor "none".
absl::StatusOr<std::vector<PoolMode>> PoolModesOf(const EncoderFrontEnd& front,
                                                  const Request& request);

// Whether a part of the rows can be pooled like all of them: by mean or max.
absl::StatusOr<bool> PoolsParts(const EncoderFrontEnd& front, const Request& request);

}  // namespace longview::models
