#include "server/http/response_head.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace longview::server {
namespace {

void AppendField(std::string_view name, std::string_view value, std::string* head) {
  head->append(name).append(": ");
  const size_t start = head->size();
  head->append(value).append("\r\n");
  std::replace_if(
      head->begin() + static_cast<ptrdiff_t>(start), head->end() - 2,
      [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
}

// The date of the last answer is mostly that of this one.
const std::string& DateText(absl::Time now) {
  thread_local int64_t second = -1;
  thread_local std::string text;
  if (const int64_t current = absl::ToUnixSeconds(now); current != second) {
    second = current;
    text = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone());
  }
  return text;
}

void AppendConnection(const HeadOptions& options, std::string* head) {
  const int64_t seconds = absl::ToInt64Seconds(options.idle_timeout);
  if (!options.keep_alive) {
    AppendField("Connection", "close", head);
  } else if (options.http_1_0 || seconds > 0) {
    AppendField("Connection", "keep-alive", head);
    if (seconds > 0) AppendField("Keep-Alive", absl::StrCat("timeout=", seconds), head);
  }
}

}  // namespace

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

std::string Chunk(std::string_view data, bool last) {
  std::string chunk;
  chunk.reserve(data.size() + 32);
  if (!data.empty()) {
    absl::StrAppend(&chunk, absl::Hex(data.size()), "\r\n");
    chunk.append(data).append("\r\n");
  }
  if (last) chunk.append("0\r\n\r\n");
  return chunk;
}

std::string ResponseHead(const HttpResponse& response, const HeadOptions& options, absl::Time now) {
  std::string head = absl::StrCat("HTTP/1.1 ", response.status, " ");
  head.reserve(512);
  head.append(ReasonPhrase(response.status)).append("\r\n");
  AppendField("Date", DateText(now), &head);
  if (!response.content_type.empty()) AppendField("Content-Type", response.content_type, &head);
  if (response.stream == nullptr) {
    AppendField("Content-Length", std::to_string(response.body.size()), &head);
  } else if (!options.http_1_0) {
    AppendField("Transfer-Encoding", "chunked", &head);
  }
  AppendField("x-request-id", options.request_id, &head);
  for (const auto& [name, value] : response.headers) AppendField(name, value, &head);
  if (options.more != nullptr) {
    for (const auto& [name, value] : *options.more) AppendField(name, value, &head);
  }
  AppendConnection(options, &head);
  head.append("\r\n");
  return head;
}

}  // namespace longview::server
