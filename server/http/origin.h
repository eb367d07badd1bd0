// Refuses requests that a foreign web page makes a browser send to change the server (CSRF).
//
// A browser sends requests for any page that asks it to. Two headers that a page cannot choose
// tell it apart from the server's own: `Origin`, and `Host`, which names the page's own site where
// that resolves to this server's address (DNS rebinding).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace longview::server {

// Immutable, so thread-safe.
class OriginCheck {
 public:
  // `names` are the server's, besides addresses and localhost; compared without case.
  explicit OriginCheck(std::vector<std::string> names);

  // PERMISSION_DENIED, with the header's name and value, unless `host` is an address, localhost or
  // one of the names, with or without a port, and `origin`, where there is one, is that same host
  // and port. Clients that send no such header are no browsers: "" is well.
  absl::Status Check(std::string_view host, std::string_view origin) const;

 private:
  bool Knows(std::string_view host) const;

  std::vector<std::string> names_;
};

}  // namespace longview::server
