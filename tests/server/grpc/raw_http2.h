// A client that speaks HTTP/2 by hand, in order to do what gRPC's clients never do: stop in the
// middle of a message, or never read. Not thread-safe.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace longview::testing {

class RawHttp2 {
 public:
  // `window`: how much of an answer the server may send before it is told to go on. `source`: the
  // client's address.
  RawHttp2(int port, uint32_t window, const char* source = "127.0.0.1")
      : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, source, &own.sin_addr);
    bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof(own));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    std::string settings = {0, 4};  // SETTINGS_INITIAL_WINDOW_SIZE
    for (int shift = 24; shift >= 0; shift -= 8) settings += static_cast<char>(window >> shift);
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, settings));
  }
  ~RawHttp2() { close(socket_); }
  RawHttp2(const RawHttp2&) = delete;
  RawHttp2& operator=(const RawHttp2&) = delete;

  // Begins a call on a stream (1, 3, ...) with its headers alone.
  void Call(uint32_t stream, const std::string& path) { Send(Headers(stream, path)); }

  // Headers that begin and end a call without a message.
  void CallWithoutMessage(uint32_t stream, const std::string& path) {
    Send(Headers(stream, path, kEndHeaders | kEndStream));
  }

  // Cancels the stream.
  void Reset(uint32_t stream) { Send(Cancellation(stream)); }

  // Begins a call and cancels it with the same packet: the server learns of both at once.
  void CallAndReset(uint32_t stream, const std::string& path) {
    Send(Headers(stream, path) + Cancellation(stream));
  }

  // The first bytes of a message that says it has `size` of them.
  static std::string Prefix(uint32_t size) {
    std::string out = {'\0'};
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift);
    return out;
  }

  // Sends bytes of a message as the server's windows allow; false once the connection or the
  // stream is over, or after `timeout`.
  bool Data(uint32_t stream, std::string_view bytes, absl::Duration timeout = absl::Seconds(20)) {
    const absl::Time end = absl::Now() + timeout;
    while (!bytes.empty()) {
      if (over_ || ended_[stream] || absl::Now() > end) return false;
      const int64_t window = std::min(window_, stream_window_ + opened_[stream]);
      const auto take = std::min<int64_t>({window, 16384, static_cast<int64_t>(bytes.size())});
      if (take <= 0) {
        Receive(absl::Milliseconds(50));
        continue;
      }
      Send(Frame(0, 0, stream, std::string(bytes.substr(0, static_cast<size_t>(take)))));
      window_ -= take;
      opened_[stream] -= take;
      bytes.remove_prefix(static_cast<size_t>(take));
      Receive(absl::ZeroDuration());
    }
    return true;
  }

  // Whether the server ends the stream, or the connection, within `timeout`.
  bool Ended(uint32_t stream, absl::Duration timeout = absl::Seconds(10)) {
    const absl::Time end = absl::Now() + timeout;
    while (!over_ && !ended_[stream] && absl::Now() < end) Receive(absl::Milliseconds(50));
    return over_ || ended_[stream];
  }

  bool connected() const { return connected_; }
  // The server has closed the connection, as far as has been noticed.
  bool over() const { return over_; }

 private:
  static std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& body) {
    std::string out;
    for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(body.size() >> shift);
    out += static_cast<char>(type);
    out += static_cast<char>(flags);
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> shift);
    return out + body;
  }

  static constexpr uint8_t kEndStream = 1;
  static constexpr uint8_t kEndHeaders = 4;

  static std::string Headers(uint32_t stream, const std::string& path,
                             uint8_t flags = kEndHeaders) {
    std::string block;
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, std::string>>{{":method", "POST"},
                                                          {":scheme", "http"},
                                                          {":path", path},
                                                          {":authority", "test"},
                                                          {"content-type", "application/grpc"},
                                                          {"te", "trailers"}}) {
      block += '\0';
      block += static_cast<char>(name.size()) + name;
      block += static_cast<char>(value.size()) + value;
    }
    return Frame(1, flags, stream, block);
  }

  static std::string Cancellation(uint32_t stream) {
    return Frame(3, 0, stream, std::string("\0\0\0\x08", 4));
  }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        over_ = true;
        return;
      }
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  void Receive(absl::Duration wait) {
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) <= 0) return;
    std::array<char, 65536> buffer;
    const ssize_t got = recv(socket_, buffer.data(), buffer.size(), 0);
    if (got <= 0) over_ = true;
    received_.append(buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
    while (received_.size() >= 9 && received_.size() >= 9 + Number(0, 3)) {
      Read(static_cast<uint8_t>(received_[3]), static_cast<uint8_t>(received_[4]), Number(5, 4));
      received_.erase(0, 9 + Number(0, 3));
    }
  }

  uint32_t Number(size_t at, size_t bytes) const {
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; ++i) {
      number = number << 8 | static_cast<uint8_t>(received_[at + i]);
    }
    return number;
  }

  void Read(uint8_t type, uint8_t flags, uint32_t stream) {
    if (type == 3 || (type == 1 && (flags & 1) != 0)) ended_[stream] = true;
    if (type == 4 && (flags & 1) == 0) {
      for (size_t at = 9; at < 9 + Number(0, 3); at += 6) {
        if (Number(at, 2) == 4) stream_window_ = Number(at + 2, 4);
      }
      Send(Frame(4, 1, 0, ""));
    }
    if (type == 6 && (flags & 1) == 0) Send(Frame(6, 1, 0, received_.substr(9, 8)));
    if (type == 8 && stream == 0) window_ += Number(9, 4);
    if (type == 8 && stream != 0) opened_[stream] += Number(9, 4);
  }

  const int socket_;
  bool connected_ = false;
  bool over_ = false;
  std::string received_;
  int64_t window_ = 65535;
  int64_t stream_window_ = 65535;
  std::map<uint32_t, int64_t> opened_;  // Gains and uses of a stream's window.
  std::map<uint32_t, bool> ended_;
};

}  // namespace longview::testing
