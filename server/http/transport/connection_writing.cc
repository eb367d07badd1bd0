// Answers, whole and as they are made.
#include <algorithm>
#include <array>

#include "absl/time/clock.h"
#include "boost/asio/dispatch.hpp"
#include "boost/asio/write.hpp"
#include "server/call_ids.h"
#include "server/errors.h"
#include "server/http/response_head.h"
#include "server/http/transport/connection_parts.h"

namespace longview::server {
namespace {

// Parts of a streamed answer that are written before others have their turn on the thread.
constexpr int kDirectWrites = 8;
// Bytes of an answer handed over at once: the reader has the grace of a transfer for so much.
constexpr size_t kWriteBytes = 128 * 1024;

}  // namespace

HttpConnection::Task HttpConnection::Write(HttpResponse response, std::string_view request_id) {
  const std::string head = ResponseHead(response, HeadOf(request_id), absl::Now());
  const asio::const_buffer body = asio::buffer(response.body);
  co_await Send(asio::buffer(head), head_only_ ? asio::const_buffer() : body);
}

HttpConnection::Task HttpConnection::Send(asio::const_buffer first, asio::const_buffer second) {
  const auto start = Clock::now();
  size_t sent = 0;
  ErrorCode error;
  do {
    const size_t piece = std::min(second.size(), kWriteBytes);
    const std::array<asio::const_buffer, 2> parts = {first, asio::buffer(second, piece)};
    ArmTransfer(start, sent);
    sent += co_await asio::async_write(stream_, parts, Into(error));
    first = asio::const_buffer();
    second += piece;
  } while (second.size() > 0 && !error);
  Disarm();
  if (error) TellIfSlow();
  if (error) client_state_ = Client::kGone;
}

HttpConnection::Task HttpConnection::WriteStream(HttpResponse& response) {
  if (http_1_0_) keep_alive_ = false;  // Without chunks, only closing tells the body's end.
  phase_ = Phase::kStreaming;
  StartWatch();
  const auto framed = [this](std::string_view data, bool last) {
    return http_1_0_ ? std::string(data) : Chunk(data, last);
  };
  response.stream->Listen([weak = weak_from_this()] {
    const std::shared_ptr<HttpConnection> listening = weak.lock();
    if (listening == nullptr) return;
    listening->wakes_->Add([weak] {
      const std::shared_ptr<HttpConnection> self = weak.lock();
      if (self) asio::dispatch(self->stream_.get_executor(), [self] { self->Wake(); });
    });
  });
  std::string data = ResponseHead(response, HeadOf(request_id_), absl::Now());
  ErrorCode error;
  while (watch_ == Watch::kInterim && !Gone()) {
    wake_.expires_at(asio::steady_timer::time_point::max());
    co_await wake_.async_wait(Into(error));
  }
  if (leaving_ == Leaving::kGivenUp) response.stream->End(ShuttingDownError());
  bool last = false;
  int written = 0;     // Without a pause.
  bool quiet = false;  // Nothing was written for the time of a filler.
  while (!last && !Gone()) {
    const BodyStream::Part part = response.stream->Take();
    last = part.last;
    data += framed(part.data, last);
    error = {};
    if (data.empty() && !last && !quiet && watch_ != Watch::kFillerDue) {
      wake_.expires_after(absl::ToChronoNanoseconds(options_.stream_filler));
      written = 0;
      co_await wake_.async_wait(Into(error));
      quiet = !error;  // An error means that the wait was cancelled, by Wake.
      continue;
    }
    const bool asked = watch_ == Watch::kFillerDue;
    if (asked) watch_ = Watch::kReading;
    if ((std::exchange(quiet, false) || asked) && !last) {
      data += framed(response.stream->Filler(), last);
    }
    // A token is a few bytes, which the system takes at once: no trip through the event loop, but
    // for other connections' sake.
    const bool direct = ++written < kDirectWrites;
    const size_t sent = direct ? stream_.TryWrite(asio::buffer(data)) : 0;
    if (sent < data.size()) {
      written = 0;
      co_await Send(asio::buffer(data) + sent, asio::const_buffer());
    }
    data.clear();
  }
}

HttpConnection::Task HttpConnection::Refuse(HttpResponse response) {
  keep_alive_ = false;
  if (request_id_.empty()) request_id_ = RequestIdOr("");
  co_await Write(std::move(response), request_id_);
  if (!Gone()) co_await Linger();
}

HttpConnection::Task HttpConnection::Linger() {
  // Closing with unread input would reset the connection and take the answer with it.
  ErrorCode error;
  std::string scratch(kBodyChunk, '\0');
  Arm(kLinger);
  co_await stream_.ShutdownSend(error);
  while (!error) co_await stream_.socket().async_read_some(asio::buffer(scratch), Into(error));
  Disarm();
}

}  // namespace longview::server
