#include "server/http/transport/connection.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "boost/asio/co_spawn.hpp"
#include "boost/asio/detached.hpp"
#include "boost/asio/dispatch.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/redirect_error.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/read.hpp"
#include "server/http/body_error.h"
#include "server/http/error_body.h"
#include "server/http/inflate.h"
#include "server/http/response_head.h"
#include "server/http/transport/request.h"
#include "server/request_id.h"

namespace longview::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr size_t kReadBytes = 16 * 1024;
// Of pipelined requests, how much is read ahead while one is being answered.
constexpr size_t kMaxReadAhead = 256 * 1024;
constexpr size_t kBodyChunk = 64 * 1024;
// Parts of a streamed answer that are written before others have their turn on the thread.
constexpr int kDirectWrites = 8;
constexpr std::chrono::seconds kAfterTimeout(1);
constexpr std::chrono::milliseconds kCancelAgain(5);
constexpr absl::Duration kLinger = absl::Seconds(5);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// The completion token of every operation here: errors go into `error`, nothing throws.
auto Into(boost::system::error_code& error) {
  return asio::redirect_error(asio::use_awaitable, error);
}

HttpResponse WithStatus(int status, std::string message, std::string_view path,
                        std::string_view request_id) {
  HttpResponse response =
      ErrorResponse(absl::InvalidArgumentError(message), ShapeOfPath(path), request_id);
  response.status = status;
  return response;
}

}  // namespace

Connection::Connection(std::shared_ptr<asio::io_context> context, std::shared_ptr<WakeQueue> wakes,
                       tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                       const TransportOptions& options, const Dispatcher& dispatch)
    : context_(std::move(context)),
      wakes_(std::move(wakes)),
      stream_(std::move(socket), std::move(tls)),
      options_(options),
      dispatch_(dispatch),
      timer_(stream_.get_executor()),
      wake_(stream_.get_executor()),
      probe_(stream_.get_executor()) {
  ErrorCode error;
  peer_ = stream_.socket().remote_endpoint(error).address().to_string();
  stream_.socket().set_option(tcp::no_delay(true), error);
}

void Connection::Start(std::function<void()> closed) {
  asio::co_spawn(
      stream_.get_executor(), [self = shared_from_this()] { return self->Run(); },
      [self = shared_from_this(), closed = std::move(closed)](std::exception_ptr) {
        ErrorCode ignored;
        self->timer_.cancel();
        self->stream_.socket().close(ignored);
        if (self->current_) self->current_->Cancel();
        self->current_.reset();
        closed();
      });
}

void Connection::Drain() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->draining_ = true;
    ErrorCode ignored;
    if (self->idle_) self->stream_.socket().cancel(ignored);
  });
}

void Connection::Abort() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->draining_ = true;
    self->gone_ = true;
    self->Wake();
    ErrorCode ignored;
    self->stream_.socket().close(ignored);
  });
}

Connection::Task Connection::Run() {
  bool more = co_await Handshake();
  while (more) more = co_await ServeOne();
  if (gone_) co_return;
  ErrorCode ignored;
  Arm(kLinger);
  co_await stream_.ShutdownSend(ignored);
  Disarm();
}

Connection::Answered Connection::Handshake() {
  ErrorCode error;
  Arm(options_.header_timeout);
  co_await stream_.Handshake(error);
  Disarm();
  gone_ = gone_ || error.failed();
  co_return !gone_;
}

Connection::Answered Connection::ServeOne() {
  bool ok = co_await AwaitFirstByte();
  if (!ok) co_return false;
  request_id_.clear();
  path_.clear();
  head_only_ = false;
  Parser parser;
  parser.header_limit(static_cast<uint32_t>(options_.max_header_bytes));
  parser.body_limit(options_.max_body_bytes);
  HttpRequest request;
  ok = co_await ReadHead(parser, &request_id_);
  if (!ok) co_return false;
  request = ConvertHead(parser.get());
  request.peer = peer_;
  CallInfo info = NewCall();
  info.trace = ParseTraceparent(request.Header("traceparent"));
  ok = co_await Admit(request, &info);
  if (!ok) co_return false;
  ok = co_await ReadBody(parser, &request);
  if (!ok) co_return false;

  info.arrival = absl::Now();
  answer_.reset();
  current_ = std::make_shared<Exchange>(
      std::move(request), std::move(info), [weak = weak_from_this()](HttpResponse response) {
        const std::shared_ptr<Connection> self = weak.lock();
        if (!self) return;
        asio::post(self->stream_.get_executor(), [self, response = std::move(response)]() mutable {
          self->answer_ = std::move(response);
          self->Wake();
        });
      });
  dispatch_(current_);
  co_await AwaitAnswer();
  if (draining_) keep_alive_ = false;
  const bool streamed = answer_ && answer_->stream != nullptr;
  if (streamed && !gone_) co_await WriteStream(*answer_);
  co_await StopWatch();
  if (gone_) current_->Cancel();
  current_.reset();
  if (gone_ || streamed) answer_.reset();
  if (gone_ || streamed || !answer_) co_return streamed&& keep_alive_ && !gone_;
  co_await Write(*std::move(answer_), request_id_);
  co_return keep_alive_ && !gone_;
}

CallInfo Connection::NewCall() const {
  CallInfo info;
  info.request_id = request_id_;
  info.client = peer_;
  info.arrival = absl::Now();
  info.api = "http";
  return info;
}

Connection::Answered Connection::Admit(const HttpRequest& request, CallInfo* info) {
  if (!options_.admit) co_return true;
  std::optional<HttpResponse> refusal = options_.admit(request, *info);
  if (!refusal) co_return true;
  co_await Refuse(*std::move(refusal));
  co_return false;
}

Connection::Answered Connection::AwaitFirstByte() {
  if (buffer_.size() > 0) co_return true;
  if (half_closed_ || draining_) co_return false;
  ErrorCode error;
  idle_ = true;
  Arm(options_.idle_timeout);
  const size_t bytes = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), Into(error));
  idle_ = false;
  Disarm();
  buffer_.commit(bytes);
  co_return !error;
}

Connection::Answered Connection::ReadHead(Parser& parser, std::string* request_id) {
  ErrorCode error;
  Arm(options_.header_timeout);
  co_await http::async_read_header(stream_, buffer_, parser, Into(error));
  Disarm();
  const auto& message = parser.get();
  path_ = TargetPath(message);
  *request_id = RequestIdOr(Field(message, "x-request-id"));
  keep_alive_ = message.keep_alive();
  http_1_0_ = message.version() < 11;
  head_only_ = message.method() == http::verb::head;
  if (!error) co_return true;

  HttpResponse refusal;
  if (timed_out_) {
    refusal = WithStatus(408, "the request's head took too long", path_, *request_id);
  } else if (error == http::error::header_limit) {
    refusal = WithStatus(431,
                         absl::StrCat("the request's head is larger than ",
                                      options_.max_header_bytes, " bytes, the limit"),
                         path_, *request_id);
  } else if (error == http::error::body_limit) {
    refusal = ErrorResponse(BodyTooLarge(options_.max_body_bytes), ShapeOfPath(path_), *request_id);
  } else if (error.category() == make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream) {
    refusal = WithStatus(400, "not a valid HTTP request: " + error.message(), path_, *request_id);
  } else {
    co_return false;  // The client left.
  }
  co_await Refuse(std::move(refusal));
  co_return false;
}

Connection::Answered Connection::ReadBody(Parser& parser, HttpRequest* request) {
  absl::Status status = CheckBodyFields(*request);
  if (!status.ok()) {
    HttpResponse refusal = ErrorResponse(status, ShapeOfPath(path_), request_id_);
    if (!request->Header("Expect").empty() && !ExpectsContinue(*request)) refusal.status = 417;
    if (refusal.status == 415) refusal.headers.emplace_back("Accept-Encoding", "gzip, deflate");
    co_await Refuse(std::move(refusal));
    co_return false;
  }
  ErrorCode error;
  const auto length = parser.content_length();
  const bool has_body = parser.chunked() || (length && *length > 0);
  if (has_body && ExpectsContinue(*request) && buffer_.size() == 0 && !http_1_0_) {
    Arm(options_.transfer_grace);
    co_await asio::async_write(stream_, asio::buffer(kContinue), Into(error));
  }
  if (has_body && !error && parser.chunked()) {
    error = co_await ReadChunkedBody(parser, &request->body);
  } else if (has_body && !error) {
    error = co_await ReadSizedBody(*length, &request->body);
  }
  Disarm();
  const std::string_view coding = request->Header("Content-Encoding");
  if (error && timed_out_) {
    co_await Refuse(WithStatus(408, "the request's body came too slowly", path_, request_id_));
    co_return false;
  }
  if (error == http::error::body_limit) {
    status = BodyTooLarge(options_.max_body_bytes);
  } else if (error == asio::error::eof || error == http::error::partial_message) {
    status = absl::InvalidArgumentError("the connection ended within the request's body");
  } else if (error.category() == make_error_code(http::error::bad_method).category()) {
    status = absl::InvalidArgumentError("the request's body is malformed: " + error.message());
  } else if (error) {
    co_return false;
  } else if (IsCompressed(coding)) {
    auto plain = Decompress(coding, request->body, options_.max_body_bytes);
    if (plain.ok()) {
      request->body = *std::move(plain);
      co_return true;
    }
    status = plain.status();
  }
  if (status.ok()) co_return true;
  co_await Refuse(ErrorResponse(status, ShapeOfPath(path_), request_id_));
  co_return false;
}

boost::asio::awaitable<Connection::ErrorCode> Connection::ReadSizedBody(size_t length,
                                                                        std::string* body) {
  ErrorCode error;
  size_t received = std::min(length, buffer_.size());
  body->resize(received);
  asio::buffer_copy(asio::buffer(*body), buffer_.data());
  buffer_.consume(received);
  const absl::Time start = absl::Now();
  while (received < length && !error) {
    // Memory follows what has come, not what was announced.
    if (received == body->size()) {
      body->resize(std::min(length, std::max(kBodyChunk, 2 * received)));
    }
    ArmTransfer(start, received);
    received += co_await stream_.async_read_some(
        asio::buffer(body->data() + received, body->size() - received), Into(error));
  }
  body->resize(received);
  co_return error;
}

boost::asio::awaitable<Connection::ErrorCode> Connection::ReadChunkedBody(Parser& parser,
                                                                          std::string* body) {
  ErrorCode error;
  std::string chunk(kBodyChunk, '\0');
  const absl::Time start = absl::Now();
  while (!parser.is_done() && !error) {
    auto& target = parser.get().body();
    target.data = chunk.data();
    target.size = chunk.size();
    target.more = true;
    ArmTransfer(start, body->size());
    co_await http::async_read_some(stream_, buffer_, parser, Into(error));
    if (error == http::error::need_buffer) error = {};
    body->append(chunk.data(), chunk.size() - target.size);
    if (!error && body->size() > options_.max_body_bytes) error = http::error::body_limit;
  }
  co_return error;
}

Connection::Task Connection::AwaitAnswer() {
  if (answer_ || gone_) co_return;
  StartWatch();
  ErrorCode error;
  while (!answer_ && !gone_) {
    wake_.expires_at(asio::steady_timer::time_point::max());
    co_await wake_.async_wait(Into(error));
  }
}

void Connection::StartWatch() {
  if (watching_ || half_closed_) return;
  watching_ = true;
  asio::co_spawn(
      stream_.get_executor(), [self = shared_from_this()] { return self->Watch(); },
      asio::detached);
}

Connection::Task Connection::StopWatch() {
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

Connection::Task Connection::Watch() {
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

Connection::Task Connection::ProbeHalfClosed(ErrorCode* error) {
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

Connection::Task Connection::Write(HttpResponse response, std::string_view request_id) {
  const HeadOptions options{keep_alive_, http_1_0_, request_id};
  const std::string head = ResponseHead(response, options, absl::Now());
  std::array<asio::const_buffer, 2> parts = {asio::buffer(head), asio::buffer(response.body)};
  if (head_only_) parts[1] = asio::const_buffer();
  ErrorCode error;
  // The system's buffers take short answers at once, long ones are given time by their size.
  Arm(options_.transfer_grace +
      absl::Seconds(static_cast<double>(response.body.size()) / options_.min_rate));
  co_await asio::async_write(stream_, parts, Into(error));
  Disarm();
  if (error) gone_ = true;
}

Connection::Task Connection::WriteStream(HttpResponse& response) {
  if (http_1_0_) keep_alive_ = false;  // Its end is the end of the connection.
  streaming_ = true;
  StartWatch();
  const auto framed = [this](std::string_view data, bool last) {
    return http_1_0_ ? std::string(data) : Chunk(data, last);
  };
  response.stream->Listen([weak = weak_from_this()] {
    const std::shared_ptr<Connection> listening = weak.lock();
    if (listening == nullptr) return;
    listening->wakes_->Add([weak] {
      const std::shared_ptr<Connection> self = weak.lock();
      if (self) asio::dispatch(self->stream_.get_executor(), [self] { self->Wake(); });
    });
  });
  std::string data = ResponseHead(response, {keep_alive_, http_1_0_, request_id_}, absl::Now());
  ErrorCode error;
  while (probing_ && !gone_) {
    wake_.expires_at(asio::steady_timer::time_point::max());
    co_await wake_.async_wait(Into(error));
  }
  bool last = false;
  int written = 0;  // Without a pause.
  while (!last && !gone_) {
    const BodyStream::Part part = response.stream->Take();
    last = part.last;
    data += framed(part.data, last);
    error = {};
    if (data.empty() && !last && !filler_due_) {
      wake_.expires_after(absl::ToChronoNanoseconds(options_.stream_filler));
      written = 0;
      co_await wake_.async_wait(Into(error));
      filler_due_ = filler_due_ || !error;  // An error: woken before that.
      continue;
    }
    if (std::exchange(filler_due_, false) && !last) data += framed(response.stream->Filler(), last);
    // A token is a few bytes, which the system takes at once: no trip through the event loop, but
    // for other connections' sake.
    const bool direct = ++written < kDirectWrites;
    const size_t sent = direct ? stream_.TryWrite(asio::buffer(data)) : 0;
    if (sent < data.size()) {
      written = 0;
      Arm(options_.transfer_grace +
          absl::Seconds(static_cast<double>(data.size()) / options_.min_rate));
      co_await asio::async_write(stream_, asio::buffer(data) + sent, Into(error));
      Disarm();
      if (error) gone_ = true;
    }
    data.clear();
  }
  streaming_ = false;
}

Connection::Task Connection::Refuse(HttpResponse response) {
  keep_alive_ = false;
  if (request_id_.empty()) request_id_ = RequestIdOr("");
  co_await Write(std::move(response), request_id_);
  if (!gone_) co_await Linger();
}

Connection::Task Connection::Linger() {
  // Closing with unread input would reset the connection and take the answer with it.
  ErrorCode error;
  std::string scratch(kBodyChunk, '\0');
  Arm(kLinger);
  co_await stream_.ShutdownSend(error);
  while (!error) co_await stream_.socket().async_read_some(asio::buffer(scratch), Into(error));
  Disarm();
}

void Connection::ArmTransfer(absl::Time start, size_t bytes) {
  const absl::Time until = start + options_.transfer_grace +
                           absl::Seconds(static_cast<double>(bytes) / options_.min_rate);
  Arm(until - absl::Now());
}

void Connection::Arm(absl::Duration timeout) {
  timed_out_ = false;
  deadline_ = Clock::now() + absl::ToChronoNanoseconds(timeout);
  ScheduleTimer();
}

void Connection::Disarm() { deadline_ = Clock::time_point::max(); }

void Connection::ScheduleTimer() {
  // A timer that fires too early costs less than setting it for every operation: the system
  // is asked again only when the deadline comes nearer than what is set.
  if (timer_set_ <= deadline_) return;
  timer_set_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (!error) self->OnTimer();
  });
}

void Connection::OnTimer() {
  timer_set_ = Clock::time_point::max();
  if (Clock::now() < deadline_) return ScheduleTimer();
  ErrorCode ignored;
  if (timed_out_) {
    stream_.socket().close(ignored);
    return;
  }
  timed_out_ = true;
  stream_.socket().cancel(ignored);
  // A read that had just completed starts another, which the cancellation missed.
  deadline_ = Clock::now() + kAfterTimeout;
  ScheduleTimer();
}

void Connection::Wake() { wake_.cancel(); }

}  // namespace longview::server
