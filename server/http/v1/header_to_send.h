// Advice for the sender of a text or a picture that names no media type: curl's --data-binary sends
// that of a form.
// Thread-safe: pure functions.
#pragma once

#include <google/protobuf/descriptor.h>

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace longview::server {

// `not_json` with the header behind it that says what `body` is, where the request had no
// Content-Type or a form's (`media`, in lower case, without parameters), and one of `messages`
// could hold the body as its text or image. Otherwise `not_json` as it is.
absl::Status WithHeaderToSend(const absl::Status& not_json, std::string_view media,
                              std::string_view body,
                              std::span<const google::protobuf::Descriptor* const> messages);

}  // namespace longview::server
