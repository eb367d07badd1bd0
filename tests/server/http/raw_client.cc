#include "tests/server/http/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace longview::testing {

RawClient::RawClient(int port) {
  fd_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("cannot connect to the server under test");
  }
  const timeval timeout{20, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

RawClient::~RawClient() { Close(); }

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void RawClient::HalfClose() { shutdown(fd_, SHUT_WR); }

void RawClient::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool RawClient::Fill() {
  char bytes[65536];
  const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::optional<RawResponse> RawClient::Read(bool head_only) {
  size_t head_end;
  while ((head_end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!Fill()) return std::nullopt;
  }
  RawResponse response;
  std::string_view head = std::string_view(buffer_).substr(0, head_end);
  response.status = std::atoi(std::string(head.substr(9, 3)).c_str());
  for (size_t line = head.find("\r\n"); line != std::string_view::npos;) {
    const size_t next = head.find("\r\n", line + 2);
    const std::string_view field = head.substr(line + 2, next - line - 2);
    const size_t colon = field.find(": ");
    response.headers.emplace_back(field.substr(0, colon), field.substr(colon + 2));
    line = next;
  }
  const std::string length(response.Header("Content-Length"));
  const size_t body_size = head_only || length.empty() ? 0 : std::stoul(length);
  buffer_.erase(0, head_end + 4);
  while (buffer_.size() < body_size) {
    if (!Fill()) return std::nullopt;
  }
  response.body = buffer_.substr(0, body_size);
  buffer_.erase(0, body_size);
  return response;
}

std::optional<RawResponse> RawClient::ReadFinal(bool head_only) {
  std::optional<RawResponse> response = Read(head_only);
  while (response && response->status < 200) response = Read(head_only);
  return response;
}

std::optional<std::string> RawClient::ReadChunk() {
  size_t line_end;
  while ((line_end = buffer_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return std::nullopt;
  }
  const size_t size = std::stoul(buffer_.substr(0, line_end), nullptr, 16);
  while (buffer_.size() < line_end + 2 + size + 2) {
    if (!Fill()) return std::nullopt;
  }
  const std::string chunk = buffer_.substr(line_end + 2, size);
  buffer_.erase(0, line_end + 2 + size + 2);
  return chunk;
}

std::optional<std::string> RawClient::ReadChunks() {
  std::string body;
  for (;;) {
    const std::optional<std::string> chunk = ReadChunk();
    if (!chunk) return std::nullopt;
    if (chunk->empty()) return body;
    body += *chunk;
  }
}

std::string RawClient::ReadToEnd() {
  while (Fill()) {
  }
  return std::exchange(buffer_, {});
}

bool RawClient::ClosesWithin(double seconds) {
  pollfd event{fd_, POLLIN, 0};
  if (poll(&event, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
  return !Fill();
}

RawResponse Fetch(int port, std::string_view method, std::string_view target, std::string_view body,
                  std::string_view headers) {
  RawClient client(port);
  std::string request = std::string(method).append(" ").append(target).append(
      " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
  request.append(headers);
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  request.append("\r\n").append(body);
  client.Send(request);
  return client.ReadFinal(method == "HEAD").value_or(RawResponse{});
}

}  // namespace longview::testing
