#include "server/security/proxy_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>

namespace longview::server {
namespace {

using Kind = ProxyHeader::Kind;

// From here on the socket is readable once so many bytes wait in it.
void SetReadableAt(int socket, size_t bytes) {
  const int least = static_cast<int>(bytes);
  (void)setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
}

ssize_t Receive(int socket, char* bytes, size_t size, int flags) {
  ssize_t received = 0;
  do {
    received = recv(socket, bytes, size, flags | MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  return received;
}

// How many bytes the last look asked to wait for.
size_t ReadableAt(int socket) {
  int least = 1;
  socklen_t size = sizeof(least);
  (void)getsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &least, &size);
  return static_cast<size_t>(least);
}

}  // namespace

ProxyHeader TakeProxyHeader(int socket) {
  char begin[kMaxProxyHeader];
  const ssize_t received = Receive(socket, begin, sizeof(begin), MSG_PEEK);
  if (received < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK;
    return {.kind = later ? Kind::kPartial : Kind::kBad, .bytes = 1};
  }
  const auto size = static_cast<size_t>(received);
  ProxyHeader header = ParseProxyHeader({begin, size});
  if (header.kind == Kind::kPartial) {
    // Readable although too little is there: no more is to come.
    if (size == 0 || size < ReadableAt(socket)) return {.kind = Kind::kBad};
    SetReadableAt(socket, header.bytes);
    return header;
  }
  SetReadableAt(socket, 1);
  if (header.kind == Kind::kWhole &&
      Receive(socket, begin, header.bytes, 0) != static_cast<ssize_t>(header.bytes)) {
    return {.kind = Kind::kBad};
  }
  return header;
}

}  // namespace longview::server
