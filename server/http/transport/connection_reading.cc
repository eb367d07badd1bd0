// A request's head and body.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "boost/asio/write.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/read.hpp"
#include "server/call_ids.h"
#include "server/http/error_body.h"
#include "server/http/json/body_error.h"
#include "server/http/transport/connection_parts.h"
#include "server/http/transport/request.h"

namespace longview::server {
namespace {

// Bodies up to this are not counted: the number of connections bounds them.
constexpr size_t kFreeBytes = 16 * 1024;

HttpResponse WithStatus(int status, std::string message, std::string_view path,
                        std::string_view request_id) {
  HttpResponse response =
      ErrorResponse(absl::InvalidArgumentError(message), ShapeOfPath(path), request_id);
  response.status = status;
  return response;
}

}  // namespace

HttpConnection::Answered HttpConnection::ReadHead(Parser& parser, std::string* request_id) {
  phase_ = Phase::kHead;
  ErrorCode error;
  Arm(options_.header_timeout);
  co_await http::async_read_header(stream_, buffer_, parser, Into(error));
  Disarm();
  const auto& message = parser.get();
  path_ = TargetPath(message);
  if (options_.fields_for_page) page_ = options_.fields_for_page(Field(message, "Origin"));
  *request_id = RequestIdOr(Field(message, "x-request-id"));
  keep_alive_ = message.keep_alive();
  http_1_0_ = message.version() < 11;
  head_only_ = message.method() == http::verb::head;
  if (!error) co_return true;

  TellIfSlow();
  HttpResponse refusal;
  if (timed_out_) {
    refusal = WithStatus(408, "the request's head took too long", path_, *request_id);
  } else if (error == http::error::header_limit) {
    refusal = WithStatus(431,
                         absl::StrCat("the request's head is larger than ",
                                      options_.max_header_bytes, " bytes, the limit"),
                         path_, *request_id);
  } else if (error.category() == make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream) {
    refusal = WithStatus(400, "not a valid HTTP request: " + error.message(), path_, *request_id);
  } else {
    co_return false;  // The client left.
  }
  co_await Refuse(std::move(refusal));
  co_return false;
}

HttpConnection::Answered HttpConnection::ReadBody(Parser& parser, size_t max_bytes,
                                                  HttpRequest* request) {
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
  parser.body_limit(max_bytes);
  if (length && *length > max_bytes) error = http::error::body_limit;
  if (has_body && !error && ExpectsContinue(*request) && buffer_.size() == 0 && !http_1_0_) {
    Arm(options_.transfer_grace);
    co_await asio::async_write(stream_, asio::buffer(kContinue), Into(error));
  }
  if (has_body && !error && parser.chunked()) {
    error = co_await ReadChunkedBody(parser, request);
  } else if (has_body && !error) {
    error = co_await ReadSizedBody(*length, request);
  }
  Disarm();
  if (error && timed_out_) {
    TellIfSlow();
    co_await Refuse(WithStatus(408, "the request's body came too slowly", path_, request_id_));
    co_return false;
  }
  if (error == asio::error::no_buffer_space) {
    status = std::move(refused_);
  } else if (error == http::error::body_limit) {
    status = max_bytes < options_.max_body_bytes
                 ? BodyOverPathLimit(request->method, request->path, max_bytes)
                 : BodyTooLarge(max_bytes);
  } else if (error == http::error::header_limit) {
    status =
        absl::InvalidArgumentError(absl::StrCat("a chunk's head, or the trailers, are larger than ",
                                                options_.max_header_bytes, " bytes, the limit"));
  } else if (error == asio::error::eof || error == http::error::partial_message) {
    status = absl::InvalidArgumentError("the connection ended within the request's body");
  } else if (error.category() == make_error_code(http::error::bad_method).category()) {
    status = absl::InvalidArgumentError("the request's body is malformed: " + error.message());
  } else if (error) {
    co_return false;
  }
  if (status.ok()) co_return true;
  co_await Refuse(ErrorResponse(status, ShapeOfPath(path_), request_id_));
  co_return false;
}

boost::asio::awaitable<HttpConnection::ErrorCode> HttpConnection::ReadSizedBody(
    size_t length, HttpRequest* request) {
  std::string& body = request->body;
  size_t received = std::min(length, buffer_.size());
  body.resize(received);
  asio::buffer_copy(asio::buffer(body), buffer_.data());
  buffer_.consume(received);
  ErrorCode error = Reserve(received, request);
  const auto start = Clock::now();
  while (received < length && !error) {
    // Memory follows what has come, not what was announced.
    if (received == body.size()) {
      const size_t next = std::min(length, std::max(kBodyChunk, 2 * received));
      error = Reserve(next, request);
      if (error) break;
      body.resize(next);
    }
    ArmTransfer(start, received);
    received += co_await stream_.async_read_some(
        asio::buffer(body.data() + received, body.size() - received), Into(error));
  }
  body.resize(received);
  co_return error;
}

boost::asio::awaitable<HttpConnection::ErrorCode> HttpConnection::ReadChunkedBody(
    Parser& parser, HttpRequest* request) {
  std::string& body = request->body;
  ErrorCode error = TakeChunks(parser, &body);
  const auto start = Clock::now();
  while (error == http::error::need_more) {
    // Only a chunk's head or the trailers stay in the buffer.
    if (buffer_.size() > options_.max_header_bytes) co_return http::error::header_limit;
    error = Reserve(body.size(), request);
    if (error) break;
    ArmTransfer(start, body.size());
    buffer_.commit(co_await stream_.async_read_some(buffer_.prepare(kReadBytes), Into(error)));
    if (!error) error = TakeChunks(parser, &body);
  }
  co_return error;
}

HttpConnection::ErrorCode HttpConnection::Reserve(size_t bytes, HttpRequest* request) {
  if (options_.bytes == nullptr || bytes <= kFreeBytes) return {};
  // Half as much again for what parsing adds to the body.
  const uint64_t held = bytes + bytes / 2;
  if (request->held.bytes() >= held) return {};
  if (request->held.bytes() > 0) {
    refused_ = request->held.Resize(held);
  } else {
    auto reservation = options_.bytes->TryReserve(client_, held);
    refused_ = reservation.status();
    if (reservation.ok()) request->held = *std::move(reservation);
  }
  return refused_.ok() ? ErrorCode() : ErrorCode(asio::error::no_buffer_space);
}

HttpConnection::ErrorCode HttpConnection::TakeChunks(Parser& parser, std::string* body) {
  std::array<char, kReadBytes> data;
  ErrorCode error;
  while (!parser.is_done() && !error) {
    if (buffer_.size() == 0) return http::error::need_more;
    auto& target = parser.get().body();
    target.data = data.data();
    target.size = data.size();
    target.more = true;
    buffer_.consume(parser.put(asio::const_buffer(buffer_.cdata()), error));
    if (error == http::error::need_buffer) error = {};
    body->append(data.data(), data.size() - target.size);
  }
  return error;
}

}  // namespace longview::server
