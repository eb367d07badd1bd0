#include "server/http/transport/stream.h"

#include "boost/asio/redirect_error.hpp"
#include "boost/asio/use_awaitable.hpp"

namespace longview::server {

namespace asio = boost::asio;
using asio::ip::tcp;

Stream::Stream(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls)
    : context_(std::move(tls)), socket_(std::move(socket)) {
  if (context_ != nullptr) tls_.emplace(socket_, *context_);
}

asio::awaitable<void> Stream::Handshake(ErrorCode& error) {
  if (!tls_) co_return;
  co_await tls_->async_handshake(asio::ssl::stream_base::server,
                                 asio::redirect_error(asio::use_awaitable, error));
}

size_t Stream::TryWrite(asio::const_buffer data) {
  if (tls_) return 0;
  ErrorCode error;
  if (!socket_.non_blocking()) socket_.non_blocking(true, error);
  if (error) return 0;
  const size_t sent = socket_.write_some(data, error);
  return error ? 0 : sent;
}

asio::awaitable<void> Stream::ShutdownSend(ErrorCode& error) {
  if (tls_) {
    // Marked as closed by the peer: otherwise OpenSSL would wait for the peer to do so.
    SSL* const ssl = tls_->native_handle();
    SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
    co_await tls_->async_shutdown(asio::redirect_error(asio::use_awaitable, error));
  }
  ErrorCode ignored;
  socket_.shutdown(tcp::socket::shutdown_send, error ? ignored : error);
}

}  // namespace longview::server
