// Pages of other sites that may call this server (CORS).
//
// A browser asks before most calls of a page from elsewhere, by OPTIONS and without a key (a
// preflight), and lets the page read only answers that name its origin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/http/message.h"

namespace longview::server {

// Immutable, so thread-safe.
class Cors {
 public:
  // `origins` as ParsePageOrigins gives them; none: pages of other sites may not call.
  explicit Cors(std::vector<std::string> origins);

  // Whether a request is such a question of a browser.
  static bool IsPreflight(const HttpRequest& head);

  // PERMISSION_DENIED, with header and flag, unless pages of `origin` may call.
  absl::Status Check(std::string_view origin) const;

  // Headers of every answer to a page of `origin`; `origin` is "" where the request names none.
  HttpFields FieldsFor(std::string_view origin) const;

  // The answer to a preflight for a path of these methods, as in Allow. FieldsFor is beside it.
  static HttpResponse Preflight(const HttpRequest& head, std::string_view methods);

 private:
  bool Allows(std::string_view origin) const;

  const std::vector<std::string> origins_;
  const bool all_;
};

}  // namespace longview::server
