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
  if (answer_ || Gone()) co_return;
  StartWatch();
  ErrorCode error;
  while (!answer_ && !Gone()) {
    wake_.expires_at(asio::steady_timer::time_point::max());
    co_await wake_.async_wait(Into(error));
  }
}

void HttpConnection::StartWatch() {
  if (watch_ != Watch::kOff || client_state_ != Client::kWhole) return;
  watch_ = Watch::kReading;
  asio::co_spawn(
      stream_.get_executor(), [self = shared_from_this()] { return self->RunWatch(); },
      asio::detached);
}

HttpConnection::Task HttpConnection::StopWatch() {
  if (watch_ == Watch::kOff) co_return;
  ErrorCode ignored;
  probe_.cancel();
  while (watch_ != Watch::kOff) {
    stream_.socket().cancel(ignored);
    // A read that had just completed starts another, which the cancellation missed.
    wake_.expires_after(kCancelAgain);
    co_await wake_.async_wait(Into(ignored));
  }
}

HttpConnection::Task HttpConnection::RunWatch() {
  ErrorCode error;
  while (!error && buffer_.size() < kMaxReadAhead) {
    const size_t bytes = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), Into(error));
    buffer_.commit(bytes);
  }
  if (error == asio::error::eof) {
    if (!Gone()) client_state_ = Client::kHalfClosed;
    co_await ProbeHalfClosed(&error);
  } else if (!error) {
    // Enough read ahead; only a reset is of interest.
    co_await stream_.socket().async_wait(tcp::socket::wait_error, Into(error));
    if (!error) error = asio::error::connection_reset;
  }
  if (error && error != asio::error::operation_aborted) client_state_ = Client::kGone;
  watch_ = Watch::kOff;
  Wake();
}

HttpConnection::Task HttpConnection::ProbeHalfClosed(ErrorCode* error) {
  // HTTP/1.0 knows no interim answers: such a client is taken to wait.
  *error = asio::error::operation_aborted;
  if (http_1_0_) co_return;
  ErrorCode result;
  if (phase_ != Phase::kStreaming) {
    probe_.expires_after(absl::ToChronoMilliseconds(options_.half_close_probe));
    co_await probe_.async_wait(Into(result));
  }
  if (phase_ == Phase::kStreaming) {
    watch_ = Watch::kFillerDue;
    Wake();
  } else if (!result && !answer_) {
    watch_ = Watch::kInterim;  // One write at a time.
    co_await asio::async_write(stream_, asio::buffer(kContinue), Into(result));
    watch_ = Watch::kReading;
    Wake();
  }
  if (result || (answer_ && phase_ != Phase::kStreaming)) co_return;
  co_await stream_.socket().async_wait(tcp::socket::wait_error, Into(result));
  *error = result ? result : ErrorCode(asio::error::connection_reset);
}

}  // namespace longview::server
