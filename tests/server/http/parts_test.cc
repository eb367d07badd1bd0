// The small pieces of the HTTP layer, by tables.
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/http/deadline.h"
#include "server/http/error_body.h"
#include "server/http/inflate.h"
#include "server/http/response_head.h"
#include "server/http/router.h"
#include "server/http/uri.h"
#include "server/http/v1/multipart.h"
#include "server/status_map_http.h"

namespace longview::server {
namespace {

TEST(Uri, PercentDecoding) {
  EXPECT_EQ(PercentDecode("a%20b%C3%A9+", false), "a b\xc3\xa9+");
  EXPECT_EQ(PercentDecode("a+b", true), "a b");
  for (const char* bad : {"%", "%2", "%zz", "x%1"}) EXPECT_FALSE(PercentDecode(bad, false)) << bad;
}

TEST(Uri, Queries) {
  const auto fields = ParseQuery("model=page%2Flayout&&top_k=3&flag&empty=");
  ASSERT_TRUE(fields.has_value());
  const HttpFields expected = {
      {"model", "page/layout"}, {"top_k", "3"}, {"flag", ""}, {"empty", ""}};
  EXPECT_EQ(*fields, expected);
  EXPECT_FALSE(ParseQuery("a=%").has_value());
}

absl::StatusOr<absl::Duration> TimeoutOf(HttpFields headers) {
  HttpRequest request;
  request.arrival = absl::UnixEpoch();
  request.headers = std::move(headers);
  ASSIGN_OR_RETURN(const auto deadline, RequestDeadline(request));
  return deadline - request.arrival;
}

TEST(Deadline, BothHeadersTheShortestCounts) {
  EXPECT_EQ(*TimeoutOf({}), absl::InfiniteDuration());
  EXPECT_EQ(*TimeoutOf({{"grpc-timeout", "500m"}}), absl::Milliseconds(500));
  EXPECT_EQ(*TimeoutOf({{"Grpc-Timeout", "2H"}}), absl::Hours(2));
  EXPECT_EQ(*TimeoutOf({{"Grpc-Timeout", "3M"}}), absl::Minutes(3));
  EXPECT_EQ(*TimeoutOf({{"Grpc-Timeout", "7u"}}), absl::Microseconds(7));
  EXPECT_EQ(*TimeoutOf({{"Grpc-Timeout", "9n"}}), absl::Nanoseconds(9));
  EXPECT_EQ(*TimeoutOf({{"Grpc-Timeout", "5S"}, {"X-Envoy-Expected-Rq-Timeout-Ms", "250"}}),
            absl::Milliseconds(250));
  EXPECT_EQ(*TimeoutOf({{"X-Envoy-Expected-Rq-Timeout-Ms", "0"}}), absl::InfiniteDuration());
}

TEST(Deadline, RefusesWhatDoesNotParse) {
  for (const char* bad : {"500", "m", "-5m", "1.5S", "123456789m", "5 m", "5s", "+5m"}) {
    const auto timeout = TimeoutOf({{"Grpc-Timeout", bad}});
    EXPECT_EQ(timeout.status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(TimeoutOf({{"X-Envoy-Expected-Rq-Timeout-Ms", "soon"}}).ok());
}

std::string Deflated(const std::string& plain, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Inflate, EveryWrapperClientsUse) {
  const std::string plain = "{\"text\": \"" + std::string(200000, 'x') + "\"}";
  constexpr size_t kLimit = 1 << 20;
  EXPECT_EQ(*Decompress("gzip", Deflated(plain, 31), kLimit), plain);
  EXPECT_EQ(*Decompress("X-GZIP", Deflated(plain, 31), kLimit), plain);
  EXPECT_EQ(*Decompress("deflate", Deflated(plain, 15), kLimit), plain);
  EXPECT_EQ(*Decompress("deflate", Deflated(plain, -15), kLimit), plain);
  EXPECT_EQ(*Decompress("gzip", Deflated("a", 31) + Deflated("b", 31), kLimit), "ab");
  EXPECT_EQ(*Decompress("gzip", Deflated("", 31), kLimit), "");
}

TEST(Inflate, TheLimitIsOnWhatComesOut) {
  const std::string plain(100000, 'x');
  const std::string bomb = Deflated(plain, 31);
  EXPECT_LT(bomb.size(), 1000u);
  EXPECT_EQ(Decompress("gzip", bomb, plain.size())->size(), plain.size());
  const auto over = Decompress("gzip", bomb, plain.size() - 1);
  EXPECT_EQ(GetErrorDetail(over.status()).reason, kBodyTooLarge);
}

TEST(Inflate, DamageIsAnError) {
  const std::string good = Deflated(std::string(5000, 'x') + "end", 31);
  const std::string cut = good.substr(0, good.size() - 9);
  std::string flipped = good;
  flipped[good.size() - 6] ^= 1;  // Its checksum.
  for (const std::string& bad :
       {std::string(), std::string("plain"), cut, flipped, good + "tail"}) {
    EXPECT_EQ(Decompress("gzip", bad, 1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Head, FieldsAndTheirOrder) {
  HttpResponse response;
  response.status = 404;
  response.body = "{}";
  response.headers = {{"Allow", "GET\r\nX-Evil: 1"}};
  const std::string head =
      ResponseHead(response, {false, false, "id-1"}, absl::FromUnixSeconds(784111777));
  EXPECT_EQ(head,
            "HTTP/1.1 404 Not Found\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: application/json\r\n"
            "Content-Length: 2\r\n"
            "x-request-id: id-1\r\n"
            "Allow: GET  X-Evil: 1\r\n"
            "Connection: close\r\n\r\n");
}

TEST(RouterTest, AModelsNameMayHaveAnOrganisation) {
  Router router;
  const HttpHandler nothing = [](ExchangePtr, const PathParameters&) {};
  for (const char* path : {"/v1/models/{id}", "/v2/models/{m}", "/v2/models/{m}/ready",
                           "/v2/models/{m}/versions/{v}/ready"}) {
    router.Add(Verb::kGet, path, nothing);
  }
  const auto route = [&](const char* path) {
    Router::Match match = router.Find("GET", path);
    std::string text(match.route);
    for (const std::string& parameter : match.parameters) text += " " + parameter;
    return text;
  };
  EXPECT_EQ(route("/v1/models/org/name"), "/v1/models/{id} org/name");
  EXPECT_EQ(route("/v1/models/org%2Fname"), "/v1/models/{id} org/name");
  EXPECT_EQ(route("/v2/models/org/name"), "/v2/models/{m} org/name");
  EXPECT_EQ(route("/v2/models/name/ready"), "/v2/models/{m}/ready name");
  EXPECT_EQ(route("/v2/models/org/name/ready"), "/v2/models/{m}/ready org/name");
  EXPECT_EQ(route("/v2/models/org/name/versions/3/ready"),
            "/v2/models/{m}/versions/{v}/ready org/name 3");
  EXPECT_EQ(route("/v1/models/a/b/c"), "");
  EXPECT_EQ(route("/v1/models/a/"), "");
}

TEST(RouterTest, TemplatesParametersAndMethods) {
  Router router;
  const HttpHandler handler = [](ExchangePtr, const PathParameters&) {};
  router.Add(Verb::kGet, "/", handler);
  router.Add(Verb::kGet, "/v2/models/{m}", handler);
  router.Add(Verb::kGet, "/v2/models/stats", handler);
  router.Add(Verb::kPost, "/v2/models/{m}/versions/{v}/infer", handler);

  Router::Match match = router.Find("POST", "/v2/models/a%20b/versions/3/infer");
  EXPECT_NE(match.handler, nullptr);
  EXPECT_EQ(match.route, "/v2/models/{m}/versions/{v}/infer");
  EXPECT_EQ(match.parameters, (PathParameters{"a b", "3"}));

  EXPECT_EQ(router.Find("GET", "/v2/models/stats").route, "/v2/models/stats");
  EXPECT_EQ(router.Find("HEAD", "/v2/models/x").route, "/v2/models/{m}");
  EXPECT_NE(router.Find("HEAD", "/v2/models/x").handler, nullptr);
  match = router.Find("DELETE", "/v2/models/x");
  EXPECT_EQ(match.handler, nullptr);
  EXPECT_EQ(match.allow, "GET, HEAD");
  EXPECT_EQ(router.Find("GET", "/v2/models/x/versions/1/infer").allow, "POST");
  for (const char* unknown :
       {"", "x", "/v2", "/v2/models/", "/v2/models/x/", "//", "/v2/models/%"}) {
    EXPECT_EQ(router.Find("GET", unknown).route, "") << unknown;
  }
  EXPECT_EQ(router.Find("GET", "/").route, "/");
}

TEST(ErrorBody, TheShapesOfTheTwoProtocols) {
  const absl::Status status =
      MakeError(absl::StatusCode::kInvalidArgument, "text: too long", {"TOO_LONG", {}, "text"});
  EXPECT_EQ(ErrorResponse(status, ShapeOfPath("/v2/models/x"), "r").body,
            R"({"error":"text: too long"})");
  EXPECT_EQ(ErrorResponse(status, ShapeOfPath("/v1/classify"), "r").body,
            R"({"error":{"code":"INVALID_ARGUMENT","message":"text: too long","param":"text",)"
            R"("type":"invalid_request_error"}})");
  EXPECT_EQ(ShapeOfPath("/v2"), ErrorShape::kString);
  EXPECT_EQ(ShapeOfPath("/v22"), ErrorShape::kObject);
}

TEST(ErrorBody, StatusesAndHeadersClientsActOn) {
  const auto response = [](absl::Status status) {
    return ErrorResponse(status, ErrorShape::kObject, "r1");
  };
  const HttpResponse busy = response(MakeError(absl::StatusCode::kResourceExhausted, "full",
                                               {"QUEUE_FULL", absl::Milliseconds(1200), ""}));
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(FindField(busy.headers, "Retry-After"), "2");
  EXPECT_EQ(FindField(busy.headers, "retry-after-ms"), "1200");
  const HttpResponse loading = response(absl::UnavailableError("loading"));
  EXPECT_EQ(loading.status, 503);
  EXPECT_EQ(FindField(loading.headers, "Retry-After"), "1");
  const HttpResponse late = response(absl::DeadlineExceededError("late"));
  EXPECT_EQ(late.status, 504);
  EXPECT_EQ(FindField(late.headers, "x-should-retry"), "false");
  EXPECT_EQ(FindField(response(absl::UnimplementedError("no")).headers, "x-should-retry"), "false");
  EXPECT_EQ(FindField(response(absl::UnauthenticatedError("who")).headers, "WWW-Authenticate"),
            "Bearer");
  const HttpResponse bug = response(absl::InternalError("secret pointer 0x1234"));
  EXPECT_EQ(bug.status, 500);
  EXPECT_EQ(bug.body.find("0x1234"), std::string::npos);
  EXPECT_NE(bug.body.find("r1"), std::string::npos);
}

TEST(Multipart, PartsByName) {
  const std::string body =
      "preamble\r\n--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\npages\r\n"
      "--B\r\ncontent-type: text/plain\r\ncontent-disposition: form-data; filename=\"a;b\"; "
      "name=text\r\n\r\nline\r\n--not it\r\n\r\n--B--\r\nepilogue";
  const auto parts = ParseMultipart("multipart/form-data; boundary=B", body);
  ASSERT_TRUE(parts.ok()) << parts.status();
  const HttpFields expected = {{"model", "pages"}, {"text", "line\r\n--not it\r\n"}};
  EXPECT_EQ(*parts, expected);
}

TEST(Multipart, MalformedBodiesAreRefused) {
  const std::string type = "multipart/form-data; boundary=\"B\"";
  for (const char* body :
       {"", "--C--", "--B", "--B\r\n", "--B\r\nContent-Disposition: form-data; name=a\r\n",
        "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nvalue",
        "--B\r\nContent-Disposition: form-data\r\n\r\nvalue\r\n--B--",
        "--B\r\n\r\n\r\nvalue\r\n--B--"}) {
    EXPECT_EQ(ParseMultipart(type, body).status().code(), absl::StatusCode::kInvalidArgument)
        << body;
  }
  EXPECT_FALSE(ParseMultipart("multipart/form-data", "--B--").ok());
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n";
  EXPECT_FALSE(ParseMultipart(type, many + "--B--").ok());
}

TEST(Multipart, FieldParameters) {
  EXPECT_EQ(FieldParameter("text/plain; Charset=UTF-8", "charset"), "UTF-8");
  EXPECT_EQ(FieldParameter("a; x; y=\"q;z\"; w=1", "w"), "1");
  EXPECT_EQ(FieldParameter("a; y=\"q;z\"", "y"), "q;z");
  EXPECT_EQ(FieldParameter("a", "y"), "");
  EXPECT_EQ(FieldParameter("a; y=\"open", "y"), "");
}

}  // namespace
}  // namespace longview::server
