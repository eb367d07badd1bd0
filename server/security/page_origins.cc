#include "server/security/page_origins.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace longview::server {
namespace {

// Whether `text` is scheme://host or scheme://host:port and nothing else.
bool IsOrigin(std::string_view text) {
  const size_t end = text.find("://");
  if (end == std::string_view::npos || end == 0) return false;
  const std::string_view scheme = text.substr(0, end);
  const std::string_view host = text.substr(end + 3);
  const auto in_scheme = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.';
  };
  const auto in_host = [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) &&
           std::string_view("/?#@*\\\"'<>").find(c) == std::string_view::npos;
  };
  return !host.empty() && std::all_of(scheme.begin(), scheme.end(), in_scheme) &&
         std::all_of(host.begin(), host.end(), in_host);
}

// `origin` as a browser writes it.
std::string AsBrowsersWrite(std::string_view origin) {
  std::string text(origin);
  absl::AsciiStrToLower(&text);
  const bool usual = (text.starts_with("http://") && text.ends_with(":80")) ||
                     (text.starts_with("https://") && text.ends_with(":443"));
  if (usual) text.resize(text.rfind(':'));
  return text;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParsePageOrigins(std::string_view list) {
  std::vector<std::string> origins = absl::StrSplit(std::string(list), ',', absl::SkipWhitespace());
  for (std::string& origin : origins) {
    absl::StripAsciiWhitespace(&origin);
    if (origin == "*" && origins.size() == 1) break;
    if (!IsOrigin(origin)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", origin,
                       "' must be * alone, or an origin such as https://name or "
                       "http://name:3000, without a path"));
    }
    origin = AsBrowsersWrite(origin);
  }
  return origins;
}

}  // namespace longview::server
