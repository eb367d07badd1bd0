// A request's head and body.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "boost/asio/write.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/read.hpp"
#include "server/http/body_error.h"
#include "server/http/error_body.h"
#include "server/http/inflate.h"
#include "server/http/transport/connection_parts.h"
#include "server/http/transport/request.h"
#include "server/request_id.h"

namespace longview::server {
namespace {

HttpResponse WithStatus(int status, std::string message, std::string_view path,
                        std::string_view request_id) {
  HttpResponse response =
      ErrorResponse(absl::InvalidArgumentError(message), ShapeOfPath(path), request_id);
  response.status = status;
  return response;
}

}  // namespace

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

}  // namespace longview::server
