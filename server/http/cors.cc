#include "server/http/cors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace longview::server {
namespace {

constexpr std::string_view kEveryOrigin = "*";
// How long a browser need not ask again.
constexpr std::string_view kMaxAgeSeconds = "600";
// Fields that a page may read besides those of every answer.
constexpr std::string_view kReadable =
    "x-request-id, x-should-retry, x-longview-warning, Retry-After, retry-after-ms, Server-Timing, "
    "Inference-Header-Content-Length, WWW-Authenticate";

}  // namespace

Cors::Cors(std::vector<std::string> origins)
    : origins_(std::move(origins)),
      all_(origins_ == std::vector<std::string>{std::string(kEveryOrigin)}) {}

bool Cors::IsPreflight(const HttpRequest& head) {
  return head.method == "OPTIONS" && !head.Header("Origin").empty() &&
         !head.Header("Access-Control-Request-Method").empty();
}

bool Cors::Allows(std::string_view origin) const {
  if (all_) return true;
  const absl::string_view asked(origin.data(), origin.size());
  return std::any_of(origins_.begin(), origins_.end(), [asked](const std::string& allowed) {
    return absl::EqualsIgnoreCase(allowed, asked);
  });
}

absl::Status Cors::Check(std::string_view origin) const {
  if (Allows(origin)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kPermissionDenied,
      absl::StrCat("header Origin is ", Quoted(origin), ", whose pages may not call this server: ",
                   origins_.empty() ? "--cors_origins is not set" : "not one of --cors_origins"),
      {.reason = "FOREIGN_ORIGIN", .retry_after = {}, .param = "Origin"});
}

HttpFields Cors::FieldsFor(std::string_view origin) const {
  HttpFields fields;
  if (origins_.empty()) return fields;
  // An answer to one page must not be kept for another.
  if (!all_) fields.emplace_back("Vary", "Origin");
  if (origin.empty() || !Allows(origin)) return fields;
  fields.emplace_back("Access-Control-Allow-Origin", all_ ? kEveryOrigin : origin);
  fields.emplace_back("Access-Control-Expose-Headers", kReadable);
  return fields;
}

HttpResponse Cors::Preflight(const HttpRequest& head, std::string_view methods) {
  HttpResponse response;
  response.content_type.clear();
  response.headers.emplace_back("Access-Control-Allow-Methods", methods);
  if (const auto asked = head.Header("Access-Control-Request-Headers"); !asked.empty()) {
    // "*" would not cover Authorization.
    response.headers.emplace_back("Access-Control-Allow-Headers", asked);
  }
  response.headers.emplace_back("Access-Control-Max-Age", kMaxAgeSeconds);
  return response;
}

}  // namespace longview::server
