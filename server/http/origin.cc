#include "server/http/origin.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace longview::server {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase(absl::string_view(a.data(), a.size()),
                                absl::string_view(b.data(), b.size()));
}

// "name:port" or "[address]:port" in its two parts; without a port the second is "".
std::pair<std::string_view, std::string_view> HostAndPort(std::string_view authority) {
  const size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return {authority, ""};
  const size_t colon = authority.find(':', bracket);
  if (colon == std::string_view::npos) return {authority, ""};
  return {authority.substr(0, colon), authority.substr(colon + 1)};
}

bool IsAddress(std::string_view host) {
  const bool six = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string text(six ? host.substr(1, host.size() - 2) : host);
  unsigned char address[sizeof(in6_addr)];
  return inet_pton(six ? AF_INET6 : AF_INET, text.c_str(), address) == 1;
}

// Whether `origin` ("https://name:port") is a page of `host` ("name:port").
bool IsSameHost(std::string_view origin, std::string_view host) {
  const size_t scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos) return false;
  const std::string_view scheme = origin.substr(0, scheme_end);
  const auto [page, page_port] = HostAndPort(origin.substr(scheme_end + 3));
  const auto [name, port] = HostAndPort(host);
  const std::string_view usual = SameName(scheme, "https") ? "443" : "80";
  return SameName(page, name) &&
         (page_port.empty() ? usual : page_port) == (port.empty() ? usual : port);
}

}  // namespace

OriginCheck::OriginCheck(std::vector<std::string> names) : names_(std::move(names)) {}

bool OriginCheck::Knows(std::string_view host) const {
  if (SameName(host, "localhost") || IsAddress(host)) return true;
  return std::any_of(names_.begin(), names_.end(),
                     [&](const std::string& name) { return SameName(host, name); });
}

absl::Status OriginCheck::Check(std::string_view host, std::string_view origin) const {
  if (!host.empty() && !Knows(HostAndPort(host).first)) {
    return absl::PermissionDeniedError(
        absl::StrCat("header Host is ", Quoted(host),
                     ", expected an address, localhost, or a name of --host or --server_names"));
  }
  if (!origin.empty() && !IsSameHost(origin, host)) {
    return absl::PermissionDeniedError(absl::StrCat("header Origin is ", Quoted(origin),
                                                    ", expected the server's own, ", Quoted(host)));
  }
  return absl::OkStatus();
}

}  // namespace longview::server
