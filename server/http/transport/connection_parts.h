// Constants and types shared by the parts of HttpConnection. Included by connection*.cc only.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "boost/asio/redirect_error.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "server/http/transport/connection.h"

namespace longview::server {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

inline constexpr size_t kReadBytes = 16 * 1024;
// Bytes of pipelined requests read ahead while one is being answered.
inline constexpr size_t kMaxReadAhead = 64 * 1024;
inline constexpr size_t kBodyChunk = 64 * 1024;
inline constexpr absl::Duration kLinger = absl::Seconds(5);
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// The completion token of every operation here: errors go into `error`, nothing throws.
inline auto Into(boost::system::error_code& error) {
  return asio::redirect_error(asio::use_awaitable, error);
}

}  // namespace longview::server
