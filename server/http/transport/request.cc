#include "server/http/transport/request.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/inflate.h"
#include "server/http/json/body_error.h"
#include "server/http/uri.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {
namespace {

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

bool EqualsNoCase(std::string_view text, absl::string_view other) {
  return absl::EqualsIgnoreCase(absl::string_view(text.data(), text.size()), other);
}

std::string_view Target(const BeastRequest& message) {
  std::string_view target = View(message.target());
  const size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const size_t path = target.find('/', scheme + 3);
  return path == std::string_view::npos ? "/" : target.substr(path);
}

}  // namespace

std::string TargetPath(const BeastRequest& message) {
  const std::string_view target = Target(message);
  return SingleSlashes(target.substr(0, target.find('?')));
}

std::string_view Field(const BeastRequest& message, std::string_view name) {
  return View(message[boost::beast::string_view(name.data(), name.size())]);
}

HttpRequest ConvertHead(const BeastRequest& message) {
  HttpRequest request;
  request.arrival = SteadyNow();
  request.method = View(message.method_string());
  request.path = TargetPath(message);
  const std::string_view target = Target(message);
  if (const size_t query = target.find('?'); query != std::string_view::npos) {
    request.query = target.substr(query + 1);
  }
  for (const auto& field : message) {
    request.headers.emplace_back(View(field.name_string()), View(field.value()));
  }
  return request;
}

bool ExpectsContinue(const HttpRequest& request) {
  return EqualsNoCase(request.Header("Expect"), "100-continue");
}

absl::Status CheckBodyFields(const HttpRequest& request) {
  const std::string_view expect = request.Header("Expect");
  if (!expect.empty() && !ExpectsContinue(request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("header Expect is ", Quoted(expect), ", the limit of it is 100-continue"));
  }
  const std::string_view transfer = request.Header("Transfer-Encoding");
  if (!transfer.empty() && !EqualsNoCase(transfer, "chunked")) {
    return absl::InvalidArgumentError(
        absl::StrCat("header Transfer-Encoding is ", Quoted(transfer), ", expected chunked"));
  }
  const std::string_view coding = request.Header("Content-Encoding");
  if (!coding.empty() && !IsCompressed(coding) && !EqualsNoCase(coding, "identity")) {
    return UnsupportedMedia(absl::StrCat("header Content-Encoding is ", Quoted(coding),
                                         ", expected gzip, deflate or identity"));
  }
  return absl::OkStatus();
}

}  // namespace longview::server
