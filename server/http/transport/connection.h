// One client connection: reads requests one after the other, hands each to whoever serves it,
// writes the answers in order.
//
// Runs on one strand. While a request is being answered the socket is still read: what comes
// is the next request (pipelining), and a client that leaves cancels its call. A client that
// only shuts its sending side looks the same until something is written to it; an interim
// answer (100) tells them apart, or, where a streamed answer is on its way, the stream's filler:
// a closed socket resets the connection.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "boost/asio/awaitable.hpp"
#include "boost/asio/io_context.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/http/buffer_body.hpp"
#include "boost/beast/http/parser.hpp"
#include "server/http/exchange.h"
#include "server/http/message.h"
#include "server/http/response_head.h"
#include "server/http/transport/options.h"
#include "server/http/transport/stream.h"
#include "server/http/transport/wake_queue.h"

namespace longview::server {

// Common to all connections of a listener, and outlives them.
struct ConnectionService {
  const TransportOptions options;
  std::atomic<bool> leaving{false};  // Every answer is the last of its connection.
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // The socket's executor is a strand of `context`, which is that of `wakes`; `tls` null:
  // plaintext. `peer`: the client's address.
  HttpConnection(std::shared_ptr<boost::asio::io_context> context, std::shared_ptr<WakeQueue> wakes,
                 boost::asio::ip::tcp::socket socket,
                 std::shared_ptr<boost::asio::ssl::context> tls, std::string peer,
                 const ConnectionService& service);

  // Gives the socket back instead of Start, for a connection that is not served.
  boost::asio::ip::tcp::socket TakeSocket() { return std::move(stream_.socket()); }

  // Once, before Start: what counts the connection.
  void Count(std::shared_ptr<ConnectionLedger> ledger,
             std::unique_ptr<ConnectionLedger::Entry> entry);

  // `closed` runs once, on the strand.
  void Start(std::function<void()> closed);

  // Thread-safe. After TakeNoMore no request follows the answer under way; Drain also closes at
  // once if there is none, MakeRoom even while a request is being read. GiveUp answers what is
  // under way UNAVAILABLE and cancels it, Abort cancels it without an answer.
  void TakeNoMore() { Raise(Leaving::kDraining); }
  void Drain();
  void MakeRoom();
  void GiveUp();
  void Abort();

 private:
  class Call;
  // The request under way, from byte to byte.
  enum class Phase {
    kOpening,    // The TLS handshake, before the first request.
    kIdle,       // No request; the connection waits for the first byte of one.
    kHead,       // The head is being read, or refused.
    kBody,       // The request is admitted; its body is being read, or refused.
    kComputing,  // The handler has it, and there is no answer yet.
    kStreaming,  // The answer's head is out, its body is being made.
    kWriting,    // The answer is whole, and going out.
    kClosing,    // No other request follows; the last answer is still to arrive.
  };
  // How much of the client is there; never goes back.
  enum class Client {
    kWhole,
    kHalfClosed,  // Sends nothing more, and may read.
    kGone,        // Nobody reads the answer.
  };
  // The reading beside an answer that is being made.
  enum class Watch {
    kOff,
    kReading,    // Reads ahead, or waits for a reset.
    kInterim,    // An interim answer is being written to a half-closed client.
    kFillerDue,  // The stream is to write something to such a client.
  };
  // Whether the server ends the connection; never goes back.
  enum class Leaving {
    kNo,
    kDraining,  // No request follows the one under way.
    kGivenUp,   // The request under way is not computed to its end either.
  };
  using Task = boost::asio::awaitable<void>;
  using Answered = boost::asio::awaitable<bool>;
  using Clock = std::chrono::steady_clock;
  using ErrorCode = boost::system::error_code;
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

  Task Run();
  Answered Handshake();
  Answered ServeOne();
  Answered AwaitFirstByte();
  // False: the connection ends, an error has been answered where one helps.
  Answered ReadHead(Parser& parser, std::string* request_id);
  Answered ReadBody(Parser& parser, size_t max_bytes, HttpRequest* request);
  boost::asio::awaitable<ErrorCode> ReadSizedBody(size_t length, HttpRequest* request);
  boost::asio::awaitable<ErrorCode> ReadChunkedBody(Parser& parser, HttpRequest* request);
  // Counts a body that grows to `bytes`; no_buffer_space if it must not, with the reason in
  // refused_.
  ErrorCode Reserve(size_t bytes, HttpRequest* request);
  // The data of the chunks in the buffer. need_more: they end within a chunk.
  ErrorCode TakeChunks(Parser& parser, std::string* body);
  Task AwaitAnswer();
  void StartWatch();
  Task StopWatch();
  Task RunWatch();
  Task ProbeHalfClosed(ErrorCode* error);
  Task Write(HttpResponse response, std::string_view request_id);
  // All bytes of both, as fast as the peer reads; Gone if it does not.
  Task Send(boost::asio::const_buffer first, boost::asio::const_buffer second);
  // Head and body of a streamed answer, as it is made.
  Task WriteStream(HttpResponse& response);
  // Answers an error of the transport itself and ends the connection.
  Task Refuse(HttpResponse response);
  Task Linger();

  // After a read or write that ended with an error: tells of a client that was too slow.
  void TellIfSlow() const;

  CallInfo NewCall() const;
  HeadOptions HeadOf(std::string_view request_id) const;
  void Arm(absl::Duration timeout);
  // For the next bytes of a transfer that has moved `bytes` since `start`.
  void ArmTransfer(Clock::time_point start, size_t bytes);
  void Disarm();
  void ScheduleTimer();
  void OnTimer();
  void Wake();
  // Whether there is a Call: an admitted request whose answer is not out.
  bool Serving() const { return phase_ >= Phase::kBody && phase_ <= Phase::kWriting; }
  bool Gone() const { return client_state_ == Client::kGone; }
  void Raise(Leaving leaving);

  const std::shared_ptr<boost::asio::io_context> context_;  // Outlives the socket.
  const std::shared_ptr<WakeQueue> wakes_;
  std::shared_ptr<ConnectionLedger> ledger_;
  std::unique_ptr<ConnectionLedger::Entry> entry_;  // Null once it is closed.
  Stream stream_;
  const ConnectionService& service_;
  const TransportOptions& options_;
  std::string peer_;
  boost::beast::flat_buffer buffer_;  // Has a maximum.

  boost::asio::steady_timer timer_;
  Clock::time_point timer_set_ = Clock::time_point::max();  // When timer_ fires; max = never.
  Clock::time_point deadline_ = Clock::time_point::max();   // For the read or write under way.
  bool timed_out_ = false;
  // Cancelling it wakes the coroutine that waits on it: AwaitAnswer, WriteStream, StopWatch.
  boost::asio::steady_timer wake_;
  boost::asio::steady_timer probe_;

  std::string request_id_;
  std::string path_;      // Path of the request being read; chooses the shape of errors.
  HttpFields page_;       // More fields for its answer, as its page is told.
  std::string client_;    // The client of that request.
  absl::Status refused_;  // Why Reserve said no.
  std::optional<HttpResponse> answer_;
  ExchangePtr current_;

  Phase phase_ = Phase::kOpening;
  Client client_state_ = Client::kWhole;
  Watch watch_ = Watch::kOff;
  std::atomic<Leaving> leaving_ = Leaving::kNo;
  bool head_only_ = false;  // The request's method is HEAD.
  bool http_1_0_ = false;   // The request is HTTP/1.0.
  bool keep_alive_ = true;  // Another request may follow.
};

}  // namespace longview::server
