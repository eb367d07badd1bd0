// The PROXY protocol, versions 1 and 2: what a proxy of connections writes in front of them to say
// whose they are (haproxy.org/download/2.8/doc/proxy-protocol.txt).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longview::server {

// The most bytes of a header that is read: version 1 has at most 107, version 2 names its length.
inline constexpr size_t kMaxProxyHeader = 16 + 2048;

struct ProxyHeader {
  enum class Kind {
    kNone,     // The bytes begin something else.
    kPartial,  // The bytes may become a header; more are needed.
    kWhole,
    kBad,  // The bytes begin as a header and are none.
  };
  Kind kind = Kind::kNone;
  size_t bytes = 0;  // Length of a whole header; for a partial one, the bytes needed at least.
  // For a whole one: the client's address; "" = unknown or the proxy itself (a check of its own),
  // whose connection it then is.
  std::string client = "";
};

// `begin`: the first bytes of a connection. No start of TLS, HTTP/1 or HTTP/2 is mistaken for a
// header. Thread-safe.
ProxyHeader ParseProxyHeader(std::string_view begin);

// Takes the header off a connection, before anything else reads it: one look at what has arrived on
// a TCP socket that nobody else reads yet; never blocks.
//
// kWhole: the header is consumed, and the socket stands behind it. kNone: nothing was consumed.
// kPartial: nothing was consumed, and the socket is not readable again (by poll, epoll) before more
// has come or the peer has left; look again then. kBad: close the socket: a malformed header, the
// peer left within one, or an error.
ProxyHeader TakeProxyHeader(int socket);

}  // namespace longview::server
