// Beast's request heads as the server's own values.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "boost/beast/http/buffer_body.hpp"
#include "boost/beast/http/message.hpp"
#include "server/http/message.h"

namespace longview::server {

using BeastRequest = boost::beast::http::request<boost::beast::http::buffer_body>;

// Everything but body and peer; `arrival` is the time of the call.
HttpRequest ConvertHead(const BeastRequest& message);

// The path of the target, also of an absolute one ("http://host/path"); slashes that follow one
// another are one.
std::string TargetPath(const BeastRequest& message);

std::string_view Field(const BeastRequest& message, std::string_view name);

// Expect, Content-Encoding and Transfer-Encoding hold what the server can do:
// kUnsupportedMediaType for an unknown coding, INVALID_ARGUMENT otherwise.
absl::Status CheckBodyFields(const HttpRequest& request);

bool ExpectsContinue(const HttpRequest& request);

}  // namespace longview::server
