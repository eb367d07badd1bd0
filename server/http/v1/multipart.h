// multipart/form-data bodies (RFC 7578).
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/http/message.h"

namespace longview::server {

// The parts as name and content, in order. INVALID_ARGUMENT if `content_type` has no boundary,
// or the body does not follow it.
absl::StatusOr<HttpFields> ParseMultipart(std::string_view content_type, std::string_view body);

// The value of a parameter of a field, quoted or not: "boundary" of
// `multipart/form-data; boundary="x"`. "" if absent. Names are compared without case.
std::string_view FieldParameter(std::string_view field, std::string_view name);

}  // namespace longview::server
