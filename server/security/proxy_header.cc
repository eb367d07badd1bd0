#include "server/security/proxy_header.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/security/client_address.h"

namespace longview::server {

namespace {

using Kind = ProxyHeader::Kind;

constexpr std::string_view kText = "PROXY ";
constexpr std::string_view kBinary("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr size_t kMaxTextHeader = 107;
constexpr size_t kBinaryHead = 16;

// Whether one begins the other.
bool Agree(std::string_view a, std::string_view b) {
  const size_t both = std::min(a.size(), b.size());
  return a.substr(0, both) == b.substr(0, both);
}

bool IsPort(absl::string_view text) {
  int port = 0;
  return absl::SimpleAtoi(text, &port) && port >= 0 && port <= 65535;
}

ProxyHeader ParseText(std::string_view begin) {
  const size_t end = begin.substr(0, kMaxTextHeader).find("\r\n");
  if (end == std::string_view::npos) {
    if (begin.size() >= kMaxTextHeader) return {.kind = Kind::kBad};
    return {.kind = Kind::kPartial, .bytes = begin.size() + 1};
  }
  ProxyHeader header{.kind = Kind::kWhole, .bytes = end + 2};
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::string_view(begin.data(), end), ' ');
  if (words[1] == "UNKNOWN") return header;
  const bool v4 = words[1] == "TCP4";
  if (words.size() != 6 || (!v4 && words[1] != "TCP6") || !IsPort(words[4]) || !IsPort(words[5])) {
    return {.kind = Kind::kBad};
  }
  // Two colons at least: no port is cut off that is not there.
  const auto source = IpAddress::Parse({words[2].data(), words[2].size()});
  const auto target = IpAddress::Parse({words[3].data(), words[3].size()});
  if (!source || !target || (v4 && !source->v4())) return {.kind = Kind::kBad};
  header.client = source->ToString();
  return header;
}

ProxyHeader ParseBinary(std::string_view begin) {
  if (begin.size() < kBinaryHead) return {.kind = Kind::kPartial, .bytes = kBinaryHead};
  const auto byte = [begin](size_t i) { return static_cast<uint8_t>(begin[i]); };
  const int version = byte(12) >> 4, command = byte(12) & 15, family = byte(13);
  const size_t length = static_cast<size_t>(byte(14)) << 8 | byte(15);
  const size_t whole = kBinaryHead + length;
  if (version != 2 || command > 1 || whole > kMaxProxyHeader) return {.kind = Kind::kBad};
  if (begin.size() < whole) return {.kind = Kind::kPartial, .bytes = whole};
  ProxyHeader header{.kind = Kind::kWhole, .bytes = whole};
  if (command == 0) return header;  // LOCAL: the proxy's own.
  const auto* addresses = reinterpret_cast<const uint8_t*>(begin.data()) + kBinaryHead;
  switch (family >> 4) {
    case 1:
      if (length < 12) return {.kind = Kind::kBad};
      header.client = IpAddress::V4(addresses).ToString();
      break;
    case 2:
      if (length < 36) return {.kind = Kind::kBad};
      header.client = IpAddress::V6(addresses).ToString();
      break;
    default:  // Unspecified, or a socket of the proxy's machine.
      break;
  }
  return header;
}

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

ProxyHeader ParseProxyHeader(std::string_view begin) {
  for (const std::string_view start : {kText, kBinary}) {
    if (!Agree(begin, start)) continue;
    if (begin.size() < start.size()) return {.kind = Kind::kPartial, .bytes = start.size()};
    return start == kText ? ParseText(begin) : ParseBinary(begin);
  }
  return {};
}

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
