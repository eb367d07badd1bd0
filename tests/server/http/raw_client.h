// A blocking socket for tests that must control every byte of an HTTP exchange.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace longview::testing {

struct RawResponse {
  int status = 0;
  server::HttpFields headers;
  std::string body;

  std::string_view Header(std::string_view name) const { return server::FindField(headers, name); }
};

// Not thread-safe. Reads give up after 20 s.
class RawClient {
 public:
  explicit RawClient(int port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False once the server has closed the connection.
  bool Send(std::string_view bytes);
  // Shuts the sending side; the answer can still be read.
  void HalfClose();
  void Close();

  // The next answer, interim ones included; nullopt at the end of the connection. `head_only`:
  // the answer to HEAD.
  std::optional<RawResponse> Read(bool head_only = false);

  // The next final answer; the interim ones before it are dropped.
  std::optional<RawResponse> ReadFinal(bool head_only = false);

  // The next part of a chunked body; "" at its end, nullopt at the end of the connection.
  std::optional<std::string> ReadChunk();
  // All that is left of it.
  std::optional<std::string> ReadChunks();
  // The bytes that come until the server closes.
  std::string ReadToEnd();

  // Whether the server ends the connection within `seconds`, sending nothing more.
  bool ClosesWithin(double seconds);

 private:
  bool Fill();  // Reads more bytes into buffer_.

  int fd_ = -1;
  std::string buffer_;
};

// One request on a connection of its own. `headers` are lines, each with its "\r\n".
RawResponse Fetch(int port, std::string_view method, std::string_view target,
                  std::string_view body = "", std::string_view headers = "");

}  // namespace longview::testing
