// While a request is being answered: whether its client is still there.
#include <chrono>

#include "boost/asio/co_spawn.hpp"
#include "boost/asio/detached.hpp"
#include "boost/asio/write.hpp"
#include "server/http/transport/connection_parts.h"

namespace longview::server {
namespace {

constexpr std::chrono::milliseconds kCancelAgain(5);

}  // namespace

HttpConnection::Task HttpConnection::AwaitAnswer() {
  if (answer_ || gone_) co_return;
  StartWatch();
  ErrorCode error;
  while (!answer_ && !gone_) {
    wake_.expires_at(asio::steady_timer::time_point::max());
    co_await wake_.async_wait(Into(error));
  }
}

void HttpConnection::StartWatch() {
  if (watching_ || half_closed_) return;
  watching_ = true;
  asio::co_spawn(
      stream_.get_executor(), [self = shared_from_this()] { return self->Watch(); },
      asio::detached);
}

HttpConnection::Task HttpConnection::StopWatch() {
  if (!watching_) co_return;
  ErrorCode ignored;
  probe_.cancel();
  while (watching_) {
    stream_.socket().cancel(ignored);
    // A read that had just completed starts another, which the cancellation missed.
    wake_.expires_after(kCancelAgain);
    co_await wake_.async_wait(Into(ignored));
  }
}

HttpConnection::Task HttpConnection::Watch() {
  ErrorCode error;
  while (!error && buffer_.size() < kMaxReadAhead) {
    const size_t bytes = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), Into(error));
    buffer_.commit(bytes);
  }
  if (error == asio::error::eof) {
    half_closed_ = true;
    co_await ProbeHalfClosed(&error);
  } else if (!error) {
    // Enough read ahead; only a reset is of interest.
    co_await stream_.socket().async_wait(tcp::socket::wait_error, Into(error));
    if (!error) error = asio::error::connection_reset;
  }
  if (error && error != asio::error::operation_aborted) gone_ = true;
  watching_ = false;
  Wake();
}

HttpConnection::Task HttpConnection::ProbeHalfClosed(ErrorCode* error) {
  // HTTP/1.0 knows no interim answers: such a client is taken to wait.
  *error = asio::error::operation_aborted;
  if (http_1_0_) co_return;
  ErrorCode result;
  if (!streaming_) {
    probe_.expires_after(absl::ToChronoMilliseconds(options_.half_close_probe));
    co_await probe_.async_wait(Into(result));
  }
  if (streaming_) {
    filler_due_ = true;
    Wake();
  } else if (!result && !answer_) {
    probing_ = true;  // One write at a time.
    co_await asio::async_write(stream_, asio::buffer(kContinue), Into(result));
    probing_ = false;
    Wake();
  }
  if (result || (answer_ && !streaming_)) co_return;
  co_await stream_.socket().async_wait(tcp::socket::wait_error, Into(result));
  *error = result ? result : ErrorCode(asio::error::connection_reset);
}

}  // namespace longview::server
