#include "server/http/transport/connection.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "boost/asio/co_spawn.hpp"
#include "boost/asio/post.hpp"
#include "server/errors.h"
#include "server/http/transport/connection_parts.h"
#include "server/http/transport/request.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {
namespace {

// Time between the cancellation of an operation that timed out and the closing of its socket.
constexpr std::chrono::seconds kAfterTimeout(1);
// Bounds the unsent bytes of an answer that the system keeps: with its own megabytes, a reader
// that takes nothing would be noticed late.
using NotSent = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>;
constexpr int kNotSent = 128 * 1024;

}  // namespace

// A request that was admitted, until its answer is out: the connection does not idle.
class HttpConnection::Call {
 public:
  explicit Call(HttpConnection& connection) : connection_(connection) {
    connection_.phase_ = Phase::kBody;
    if (connection_.entry_) connection_.entry_->BeginCall();
  }
  ~Call() {
    connection_.phase_ = Phase::kIdle;
    if (connection_.entry_) connection_.entry_->EndCall();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  HttpConnection& connection_;
};

HttpConnection::HttpConnection(std::shared_ptr<asio::io_context> context,
                               std::shared_ptr<WakeQueue> wakes, tcp::socket socket,
                               std::shared_ptr<asio::ssl::context> tls, std::string peer,
                               const ConnectionService& service)
    : context_(std::move(context)),
      wakes_(std::move(wakes)),
      stream_(std::move(socket), std::move(tls)),
      service_(service),
      options_(service.options),
      peer_(std::move(peer)),
      buffer_(std::max(kMaxReadAhead, options_.max_header_bytes) + kReadBytes),
      timer_(stream_.get_executor()),
      wake_(stream_.get_executor()),
      probe_(stream_.get_executor()) {
  ErrorCode error;
  stream_.socket().set_option(tcp::no_delay(true), error);
  stream_.socket().set_option(NotSent(kNotSent), error);
}

void HttpConnection::Count(std::shared_ptr<ConnectionLedger> ledger,
                           std::unique_ptr<ConnectionLedger::Entry> entry) {
  ledger_ = std::move(ledger);
  entry_ = std::move(entry);
}

void HttpConnection::Start(std::function<void()> closed) {
  asio::co_spawn(
      stream_.get_executor(), [self = shared_from_this()] { return self->Run(); },
      [self = shared_from_this(), closed = std::move(closed)](std::exception_ptr) {
        ErrorCode ignored;
        self->timer_.cancel();
        self->stream_.socket().close(ignored);
        if (self->current_) self->current_->Cancel();
        self->current_.reset();
        self->entry_.reset();
        closed();
      });
}

void HttpConnection::Drain() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->Raise(Leaving::kDraining);
    ErrorCode ignored;
    if (self->phase_ == Phase::kIdle) self->stream_.socket().cancel(ignored);
  });
}

void HttpConnection::MakeRoom() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->Raise(Leaving::kDraining);
    ErrorCode ignored;
    if (!self->Serving()) self->stream_.socket().close(ignored);
  });
}

void HttpConnection::GiveUp() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->Raise(Leaving::kGivenUp);
    if (self->phase_ == Phase::kStreaming) return self->answer_->stream->End(ShuttingDownError());
    if (self->current_ != nullptr) self->current_->GiveUp(ShuttingDownError());
  });
}

void HttpConnection::Abort() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->Raise(Leaving::kDraining);
    self->client_state_ = Client::kGone;
    self->Wake();
    ErrorCode ignored;
    self->stream_.socket().close(ignored);
  });
}

HttpConnection::Task HttpConnection::Run() {
  bool more = co_await Handshake();
  while (more) more = co_await ServeOne();
  phase_ = Phase::kClosing;
  if (Gone()) co_return;
  // Closing with unread input would reset the connection and take the last answer with it.
  if (buffer_.size() > 0) co_return co_await Linger();
  ErrorCode ignored;
  Arm(kLinger);
  co_await stream_.ShutdownSend(ignored);
  Disarm();
}

HttpConnection::Answered HttpConnection::Handshake() {
  ErrorCode error;
  Arm(options_.header_timeout);
  co_await stream_.Handshake(error);
  Disarm();
  if (error) TellIfSlow();
  if (error) client_state_ = Client::kGone;
  co_return !Gone();
}

HttpConnection::Answered HttpConnection::ServeOne() {
  bool ok = co_await AwaitFirstByte();
  if (!ok) co_return false;
  request_id_.clear();
  path_.clear();
  page_.clear();
  head_only_ = false;
  Parser parser;
  parser.header_limit(static_cast<uint32_t>(options_.max_header_bytes));
  parser.body_limit(boost::none);  // The limit of the path is known once it is admitted.
  HttpRequest request;
  ok = co_await ReadHead(parser, &request_id_);
  if (!ok) co_return false;
  request = ConvertHead(parser.get());
  request.peer = peer_;
  CallInfo info = NewCall();
  info.trace = ParseTraceparent(request.Header("traceparent"));
  HeadVerdict verdict = options_.admit(request, info);
  if (verdict.refusal) {
    co_await Refuse(*std::move(verdict.refusal));
    co_return false;
  }
  const Call call(*this);
  client_ = info.client;
  ok = co_await ReadBody(parser, verdict.max_body_bytes, &request);
  if (!ok) co_return false;

  info.arrival = SteadyNow();
  answer_.reset();
  phase_ = Phase::kComputing;
  current_ = std::make_shared<Exchange>(
      // Weak: a handler that keeps the exchange must not keep a closed connection.
      std::move(request), std::move(info), [weak = weak_from_this()](HttpResponse response) {
        const std::shared_ptr<HttpConnection> self = weak.lock();
        if (!self) return;
        asio::post(self->stream_.get_executor(), [self, response = std::move(response)]() mutable {
          self->answer_ = std::move(response);
          self->Wake();
        });
      });
  verdict.serve(current_);
  co_await AwaitAnswer();
  if (leaving_ != Leaving::kNo || service_.leaving) keep_alive_ = false;
  const bool streamed = answer_ && answer_->stream != nullptr;
  if (streamed && !Gone()) co_await WriteStream(*answer_);
  phase_ = Phase::kWriting;
  co_await StopWatch();
  if (Gone()) current_->Cancel();
  current_.reset();
  if (Gone() || streamed) answer_.reset();
  if (Gone() || streamed || !answer_) co_return streamed&& keep_alive_ && !Gone();
  co_await Write(*std::move(answer_), request_id_);
  co_return keep_alive_ && !Gone();
}

void HttpConnection::TellIfSlow() const {
  if (timed_out_ && options_.ends) options_.ends(EndCause::kSlow, peer_);
}

CallInfo HttpConnection::NewCall() const {
  CallInfo info;
  info.request_id = request_id_;
  info.client = info.address = peer_;
  info.arrival = SteadyNow();
  info.api = "http";
  return info;
}

HeadOptions HttpConnection::HeadOf(std::string_view request_id) const {
  return {.keep_alive = keep_alive_,
          .http_1_0 = http_1_0_,
          .request_id = request_id,
          .more = &page_,
          .idle_timeout = options_.idle_timeout};
}

HttpConnection::Answered HttpConnection::AwaitFirstByte() {
  if (buffer_.size() > 0) co_return true;
  if (client_state_ != Client::kWhole || leaving_ != Leaving::kNo) co_return false;
  ErrorCode error;
  phase_ = Phase::kIdle;
  Arm(options_.idle_timeout);
  const size_t bytes = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), Into(error));
  Disarm();
  buffer_.commit(bytes);
  co_return !error;
}

void HttpConnection::ArmTransfer(Clock::time_point start, size_t bytes) {
  const absl::Duration earned = absl::Seconds(static_cast<double>(bytes) / options_.min_rate);
  const absl::Duration spent = absl::FromChrono(Clock::now() - start);
  Arm(options_.transfer_grace + std::min(earned - spent, absl::ZeroDuration()));
}

void HttpConnection::Arm(absl::Duration timeout) {
  timed_out_ = false;
  deadline_ = Clock::now() + absl::ToChronoNanoseconds(timeout);
  ScheduleTimer();
}

void HttpConnection::Disarm() { deadline_ = Clock::time_point::max(); }

void HttpConnection::ScheduleTimer() {
  // A timer that fires too early costs less than setting it for every operation: the system
  // is asked again only when the deadline comes nearer than what is set.
  if (timer_set_ <= deadline_) return;
  timer_set_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (!error) self->OnTimer();
  });
}

void HttpConnection::OnTimer() {
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

void HttpConnection::Wake() { wake_.cancel(); }

void HttpConnection::Raise(Leaving leaving) {
  Leaving now = leaving_;
  while (now < leaving && !leaving_.compare_exchange_weak(now, leaving)) {
  }
}

}  // namespace longview::server
