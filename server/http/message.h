// A request and an answer of HTTP as the handlers see them: plain values, no Beast.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "server/http/body_stream.h"
#include "server/limits/byte_budget.h"

namespace longview::server {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// The value of a field, names compared without case; "" if absent. The first one wins.
inline std::string_view FindField(const HttpFields& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (absl::EqualsIgnoreCase({key.data(), key.size()}, {name.data(), name.size()})) return value;
  }
  return {};
}

struct HttpRequest {
  std::string method;  // The request line's method, unchanged: "GET".
  std::string path;    // Percent-encoded, without the query.
  std::string query;   // Percent-encoded, without '?'.
  HttpFields headers;
  std::string body;              // Decompressed, at most the message limit.
  ByteBudget::Reservation held;  // For the body.
  std::string peer;              // Address without port.
  absl::Time arrival = absl::InfinitePast();

  std::string_view Header(std::string_view name) const { return FindField(headers, name); }
  // All values of a field that may come several times, in order.
  std::vector<std::string_view> HeaderValues(std::string_view name) const {
    std::vector<std::string_view> values;
    for (const auto& [key, value] : headers) {
      if (absl::EqualsIgnoreCase(absl::string_view(key), {name.data(), name.size()})) {
        values.push_back(value);
      }
    }
    return values;
  }
};

// Content-Length, Transfer-Encoding, Connection, Date and x-request-id are the connection's.
struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpFields headers;
  std::string body;
  std::unique_ptr<BodyStream> stream;  // Instead of `body`.
  ByteBudget::Reservation held;        // For the body.
};

}  // namespace longview::server
