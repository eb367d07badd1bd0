#include "server/grpc/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::server {
namespace {

absl::Status Failed(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

void SetPort(sockaddr_storage& address, int port) {
  const auto network = htons(static_cast<uint16_t>(port));
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = network;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = network;
  }
}

int PortOf(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// `dual`: IPv4 connections come to an IPv6 socket too.
absl::StatusOr<int> ListenOn(const sockaddr_storage& address, socklen_t size, bool dual) {
  const int descriptor =
      socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (descriptor < 0) return Failed("socket");
  const int on = 1;
  const int only_six = dual ? 0 : 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ss_family == AF_INET6) {
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof(only_six));
  }
  absl::Status status;
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    status = Failed("bind");
  } else if (listen(descriptor, SOMAXCONN) != 0) {
    status = Failed("listen");
  }
  if (status.ok()) return descriptor;
  close(descriptor);
  return status;
}

}  // namespace

absl::StatusOr<ListeningSockets> ListeningSockets::Open(const std::string& host, int port) {
  ListeningSockets sockets;
  sockets.port_ = port;
  if (host == "0.0.0.0" || host == "::") {
    sockaddr_storage any{};
    any.ss_family = AF_INET6;
    SetPort(any, port);
    const absl::StatusOr<int> both = ListenOn(any, sizeof(sockaddr_in6), true);
    if (both.ok()) {
      sockets.descriptors_.push_back(*both);
      sockets.port_ = PortOf(*both);
      return sockets;
    }
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::UnavailableError(gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  absl::Status last = absl::UnavailableError("the host has no address");
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, next->ai_addr, next->ai_addrlen);
    SetPort(address, sockets.port_);
    const absl::StatusOr<int> descriptor = ListenOn(address, next->ai_addrlen, false);
    if (!descriptor.ok()) {
      last = descriptor.status();
      continue;
    }
    sockets.descriptors_.push_back(*descriptor);
    if (sockets.port_ == 0) sockets.port_ = PortOf(*descriptor);
  }
  if (sockets.descriptors_.empty()) return last;
  return sockets;
}

void ListeningSockets::Close() {
  for (const int descriptor : descriptors_) close(descriptor);
  descriptors_.clear();
}

}  // namespace longview::server
