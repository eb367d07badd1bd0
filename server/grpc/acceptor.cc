#include "server/grpc/acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"
#include "server/security/proxy_header.h"

namespace longview::server {
namespace {

// TCP_USER_TIMEOUT: a peer that acknowledges nothing for so long is gone, whatever keepalives say.
constexpr int kUserTimeoutMs = 20'000;
// The margin of descriptors makes this rare: other parts of the process took them.
constexpr absl::Duration kNoDescriptorsPause = absl::Milliseconds(20);
// Most connections of proxies whose header has not come; they are in no ledger before that.
constexpr size_t kMostUnnamed = 1024;

// A peer in gRPC's words, and its address without port.
struct Peer {
  std::string name;
  std::string address;
};

Peer PeerOf(const sockaddr_storage& from) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (from.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(from);
    inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    return {absl::StrCat("ipv4:", text.data(), ":", ntohs(four.sin_port)), text.data()};
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(from);
  const int port = ntohs(six.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, text.data(), text.size());
    return {absl::StrCat("ipv4:", text.data(), ":", port), text.data()};
  }
  inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  return {absl::StrCat("ipv6:%5B", text.data(), "%5D:", port), text.data()};
}

void Prepare(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof(kUserTimeoutMs));
}

}  // namespace

Acceptor::Acceptor(ConnectionRules rules, absl::Duration header_timeout)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      connections_(rules, [this] { Wake(); }),
      proxies_(header_timeout > absl::ZeroDuration() ? rules.proxies : TrustedProxies()),
      header_timeout_(header_timeout),
      ends_(rules.ends) {}

Acceptor::~Acceptor() {
  stop_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
  for (const auto& [descriptor, unnamed] : unnamed_) close(descriptor);
  close(wake_);
  close(epoll_);
}

void Acceptor::Start(ListeningSockets sockets,
                     std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate) {
  sockets_ = std::move(sockets);
  gate_ = std::move(gate);
  listening_ = true;
  closed_ = false;
  Watch(wake_, EPOLLIN);
  for (const int listener : sockets_.descriptors()) Watch(listener, EPOLLIN);
  thread_ = StartThread([this] { Run(); });
}

void Acceptor::StopListening() {
  if (!thread_.joinable()) return;
  listening_ = false;
  Wake();
  // The thread closes the listening sockets itself, since only it may be inside accept4 on them.
  closed_.wait(false);
}

void Acceptor::Wake() const {
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof(one));
}

void Acceptor::Watch(int descriptor, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
}

void Acceptor::Unwatch(int descriptor) const {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

void Acceptor::Run() {
  std::array<epoll_event, 64> events;
  absl::Time next_tick = SteadyNow();  // Also where the loop begins again.
  absl::Time next_late = absl::InfiniteFuture();
  while (!stop_) {
    int wait = -1;
    const absl::Time next = std::min(next_tick, next_late);
    if (next != absl::InfiniteFuture()) {
      const int64_t left = absl::ToInt64Milliseconds(next - SteadyNow() + absl::Milliseconds(1));
      wait = static_cast<int>(std::max<int64_t>(0, left));
    }
    const int count = epoll_wait(epoll_, events.data(), events.size(), wait);
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[i].data.fd;
      if (descriptor == wake_) {
        uint64_t woken = 0;
        (void)!read(wake_, &woken, sizeof(woken));
        // Not at once, so that repeated wake-ups do not make this thread spin.
        next_tick = std::min(next_tick, SteadyNow() + Connections::kShortTick);
      } else if (std::find(sockets_.descriptors().begin(), sockets_.descriptors().end(),
                           descriptor) != sockets_.descriptors().end()) {
        if (listening_) Accept(descriptor);
      } else if (unnamed_.contains(descriptor)) {
        ReadHeader(descriptor);
      } else {
        // Closing would not end the watch while gRPC has the socket under its own descriptor.
        Unwatch(descriptor);
        connections_.Closed(descriptor);
      }
    }
    if (!listening_ && !closed_) {
      sockets_.Close();
      closed_ = true;
      closed_.notify_all();
    }
    const absl::Time now = SteadyNow();
    next_late = EndLateHeaders(now);
    if (now < next_tick) continue;
    next_tick = now + connections_.Tick(now);
  }
}

// A few at a time, so that a flood of connections does not hold up ticks and ends.
void Acceptor::Accept(int listener) {
  for (int i = 0; i < 16; ++i) {
    const int descriptor = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      OwnedDescriptor accepted(descriptor);
      Begin(accepted, listener);
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      absl::SleepFor(kNoDescriptorsPause);
    }
    if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

void Acceptor::Begin(OwnedDescriptor& accepted, int listener) {
  const int descriptor = accepted.get();
  sockaddr_storage from{};
  socklen_t size = sizeof(from);
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&from), &size) != 0) return;
  Prepare(descriptor);
  Peer peer = PeerOf(from);
  if (!proxies_.Trusts(peer.address)) {
    return HandOver(accepted, listener, std::move(peer.name), std::move(peer.address));
  }
  if (unnamed_.size() >= kMostUnnamed) {
    if (ends_) ends_(EndCause::kLimit, peer.address);
    return;
  }
  unnamed_[descriptor] = {listener, std::move(peer.name), std::move(peer.address),
                          SteadyNow() + header_timeout_};
  accepted.Release();
  Watch(descriptor, EPOLLIN);
}

void Acceptor::ReadHeader(int descriptor) {
  const ProxyHeader header = TakeProxyHeader(descriptor);
  if (header.kind == ProxyHeader::Kind::kPartial) return;
  Unwatch(descriptor);
  Unnamed unnamed = std::move(unnamed_.extract(descriptor).mapped());
  OwnedDescriptor accepted(descriptor);
  if (header.kind != ProxyHeader::Kind::kWhole) {
    if (ends_) ends_(EndCause::kProxyHeader, unnamed.address);
    return;
  }
  if (!listening_) return;
  HandOver(accepted, unnamed.listener, std::move(unnamed.peer),
           header.client.empty() ? std::move(unnamed.address) : header.client);
}

absl::Time Acceptor::EndLateHeaders(absl::Time now) {
  absl::Time next = absl::InfiniteFuture();
  absl::erase_if(unnamed_, [&](const auto& entry) {
    const auto& [descriptor, unnamed] = entry;
    if (now < unnamed.deadline) {
      next = std::min(next, unnamed.deadline);
      return false;
    }
    if (ends_) ends_(EndCause::kProxyHeader, unnamed.address);
    Unwatch(descriptor);
    close(descriptor);
    return true;
  });
  return next;
}

void Acceptor::HandOver(OwnedDescriptor& accepted, int listener, std::string peer,
                        std::string address) {
  const int second = connections_.Admit(accepted.get(), std::move(peer), std::move(address));
  if (second < 0) return;
  Watch(second, 0);  // No events asked for: epoll reports the end (EPOLLHUP) all the same.
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = accepted.Release();
  gate_->HandleNewConnection(&connection);
}

}  // namespace longview::server
