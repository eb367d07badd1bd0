// A client's connection with or without TLS, as one type for asio and Beast.
//
// Belongs to one strand. Its operations are those of tcp::socket; with TLS a read and a write may
// be under way together, as there.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "boost/asio/awaitable.hpp"
#include "boost/asio/buffer.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/ssl/context.hpp"
#include "boost/asio/ssl/stream.hpp"

namespace longview::server {

class Stream {
 public:
  using executor_type = boost::asio::ip::tcp::socket::executor_type;
  using ErrorCode = boost::system::error_code;

  // `tls` null: plaintext.
  Stream(boost::asio::ip::tcp::socket socket, std::shared_ptr<boost::asio::ssl::context> tls);

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  // The socket below TLS: for addresses, options, cancelling and closing.
  boost::asio::ip::tcp::socket& socket() { return socket_; }

  // With TLS, once, before anything is read or written; does nothing without.
  boost::asio::awaitable<void> Handshake(ErrorCode& error);
  // Tells the peer that nothing more will be written. With TLS nothing can be read any more
  // either, but from the socket below.
  boost::asio::awaitable<void> ShutdownSend(ErrorCode& error);

  // Hands the system as much as it takes at once, without waiting: how much that is, often all.
  // With TLS nothing. What is left, and errors, are for async_write_some.
  size_t TryWrite(boost::asio::const_buffer data);

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return tls_ ? tls_->async_read_some(buffers, std::forward<Token>(token))
                : socket_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return tls_ ? tls_->async_write_some(buffers, std::forward<Token>(token))
                : socket_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  std::shared_ptr<boost::asio::ssl::context> context_;
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
};

}  // namespace longview::server
