// HTTP on the socket: framing, limits, slow and leaving clients.
#include <zlib.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using TransportTest = HttpServerTest;
using ImpatienceTest = ImpatientServerTest;

std::string Gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
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

std::string Chunk(std::string_view data) {
  char size[32];
  snprintf(size, sizeof(size), "%zx\r\n", data.size());
  return std::string(size).append(data).append("\r\n");
}

TEST_F(TransportTest, KeepAliveServesManyRequests) {
  RawClient client(port_);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client.Send(Request("/v1/classify", kClassify)));
    const auto response = client.Read();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 200) << response->body;
    EXPECT_NE(response->Header("x-request-id"), "");
    EXPECT_NE(response->Header("Server-Timing").find("compute;dur="), std::string_view::npos);
  }
}

TEST_F(TransportTest, Http10ClosesUnlessAskedNotTo) {
  RawClient closing(port_);
  closing.Send("GET /livez HTTP/1.0\r\n\r\n");
  EXPECT_EQ(closing.Read()->status, 200);
  EXPECT_TRUE(closing.ClosesWithin(20));

  RawClient keeping(port_);
  keeping.Send("GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(keeping.Read()->Header("Connection"), "keep-alive");
  keeping.Send("GET /livez HTTP/1.0\r\n\r\n");
  EXPECT_EQ(keeping.Read()->status, 200);
}

TEST_F(TransportTest, ChunkedBodies) {
  RawClient client(port_);
  client.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const char c : kClassify) client.Send(Chunk(std::string(1, c)));
  client.Send("0\r\n\r\nGET /livez HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 200);
  EXPECT_EQ(client.Read()->status, 200);
}

TEST_F(TransportTest, ChunkedBodiesHaveTheSameLimit) {
  RawClient client(port_);
  client.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = Chunk(std::string(50000, 'x'));
  for (int i = 0; i < 5; ++i) client.Send(chunk);
  const auto response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 413);
  EXPECT_NE(Message(*response).find("200000 bytes"), std::string::npos) << Message(*response);
}

TEST_F(TransportTest, BrokenChunksAre400) {
  for (const char* body : {"zz\r\nabc\r\n", "-1\r\n", "5\r\nabc\r\n0\r\n\r\n"}) {
    RawClient client(port_);
    client.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.Send(body);
    client.HalfClose();
    const auto response = client.ReadFinal();
    ASSERT_TRUE(response.has_value()) << body;
    EXPECT_EQ(response->status, 400) << body;
  }
}

TEST_F(TransportTest, AnnouncedBodyOverTheLimitIsRefusedUnread) {
  RawClient client(port_);
  client.Send("POST /v2/models/one/infer HTTP/1.1\r\nHost: t\r\nContent-Length: 100000000\r\n\r\n");
  const auto response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(response->Header("Connection"), "close");
}

TEST_F(TransportTest, AClientThatSendsTooMuchStillReadsThe413) {
  const RawResponse response = Post("/v1/classify", std::string(20'000'000, 'x'));
  EXPECT_EQ(response.status, 413);
}

TEST_F(TransportTest, Continue100ComesBeforeTheBody) {
  RawClient client(port_);
  client.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(kClassify.size()) + "\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 100);
  client.Send(kClassify);
  EXPECT_EQ(client.Read()->status, 200);
}

TEST_F(TransportTest, Continue100IsNotGivenToWhatWillBeRefused) {
  RawClient large(port_);
  large.Send(
      "POST /v1/classify HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n"
      "Content-Length: 99999999\r\n\r\n");
  EXPECT_EQ(large.Read()->status, 413);
  RawClient odd(port_);
  odd.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nExpect: gold\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(odd.Read()->status, 417);
}

TEST_F(TransportTest, CompressedBodies) {
  const std::string gzip = Gzip(std::string(kClassify));
  EXPECT_EQ(Post("/v1/classify", gzip, "Content-Encoding: gzip\r\n").status, 200);
  EXPECT_EQ(Post("/v1/classify", kClassify, "Content-Encoding: identity\r\n").status, 200);
  EXPECT_EQ(Post("/v1/classify", "not gzip", "Content-Encoding: gzip\r\n").status, 400);
  const RawResponse unknown = Post("/v1/classify", "x", "Content-Encoding: br\r\n");
  EXPECT_EQ(unknown.status, 415);
  EXPECT_EQ(unknown.Header("Accept-Encoding"), "gzip, deflate");
}

TEST_F(TransportTest, GzipBombIs413) {
  const std::string bomb = Gzip(std::string(50'000'000, ' '));
  ASSERT_LT(bomb.size(), kMaxBody);
  EXPECT_EQ(Post("/v1/classify", bomb, "Content-Encoding: gzip\r\n").status, 413);
}

TEST_F(TransportTest, LongHeadsAre431) {
  RawClient client(port_);
  client.Send("GET /livez HTTP/1.1\r\nX-Long: ");
  for (int i = 0; i < 100 && client.Send(std::string(10000, 'x')); ++i) {
  }
  const auto response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 431);
}

TEST_F(TransportTest, WhatIsNotHttpIs400) {
  for (const char* bytes :
       {"\x16\x03\x01\x02garbage\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "POST /v1/classify HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/classify HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "POST /v1/classify HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "POST /v1/classify HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"}) {
    RawClient client(port_);
    client.Send(bytes);
    const auto response = client.Read();
    ASSERT_TRUE(response.has_value()) << bytes;
    EXPECT_EQ(response->status, 400) << bytes;
    EXPECT_TRUE(client.ClosesWithin(20)) << bytes;
  }
}

TEST_F(ImpatienceTest, SlowHeadsEnd) {
  RawClient client(port_);
  std::atomic<bool> sending = true;
  std::thread trickle([&] {
    for (int i = 0; sending && client.Send(i == 0 ? "GET /livez HTTP/1.1\r\n" : "X: y\r\n"); ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  const auto response = client.Read();
  sending = false;
  trickle.join();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 408);
}

TEST_F(ImpatienceTest, SlowBodiesEnd) {
  for (const char* framing : {"Content-Length: 1000", "Transfer-Encoding: chunked"}) {
    RawClient client(port_);
    client.Send(std::string("POST /v1/classify HTTP/1.1\r\nHost: t\r\n")
                    .append(framing)
                    .append("\r\n\r\n"));
    std::atomic<bool> sending = true;
    std::thread trickle([&] {
      while (sending && client.Send("1\r\nx\r\n")) {
        absl::SleepFor(absl::Milliseconds(10));
      }
    });
    const auto response = client.Read();
    sending = false;
    trickle.join();
    ASSERT_TRUE(response.has_value()) << framing;
    EXPECT_EQ(response->status, 408) << framing;
  }
}

TEST_F(ImpatienceTest, IdleConnectionsEndQuietly) {
  const absl::Time start = server::SteadyNow();
  RawClient client(port_);
  EXPECT_TRUE(client.ClosesWithin(20));
  EXPECT_GE(server::SteadyNow() - start, kIdlePatience);
}

TEST_F(TransportTest, ABodyCutShortIs400) {
  RawClient client(port_);
  client.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{\"text\"");
  client.HalfClose();
  const auto response = client.ReadFinal();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 400);
}

TEST_F(TransportTest, HalfClosedClientsGetTheirAnswer) {
  backend_.control->advance.Close();
  RawClient client(port_);
  client.Send(Request("/v1/classify", kClassify));
  client.HalfClose();
  ASSERT_TRUE(backend_.control->advance.AwaitWaiting(1, absl::Seconds(20)));
  // The server asks whether it still reads, and it does.
  EXPECT_EQ(client.Read().value_or(RawResponse{}).status, 100);
  EXPECT_EQ(backend_.cancelled(), 0);
  backend_.control->advance.Open();
  const auto response = client.ReadFinal();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 200);
  EXPECT_TRUE(client.ClosesWithin(20));
}

TEST_F(TransportTest, HalfClosedPipelinesAreAnsweredToTheEnd) {
  RawClient client(port_);
  client.Send(Request("/v1/classify", kClassify) + Request("/v1/classify", kClassify) +
              Request("/nowhere", "{}"));
  client.HalfClose();
  EXPECT_EQ(client.ReadFinal()->status, 200);
  EXPECT_EQ(client.ReadFinal()->status, 200);
  EXPECT_EQ(client.ReadFinal()->status, 404);
  EXPECT_TRUE(client.ClosesWithin(20));
}

TEST_F(TransportTest, AClosedConnectionCancels) {
  backend_.control->advance.Close();
  {
    RawClient client(port_);
    client.Send(Request("/v1/classify", kClassify));
    ASSERT_TRUE(backend_.control->advance.AwaitWaiting(1, absl::Seconds(20)));
  }
  EXPECT_TRUE(Eventually([&] { return backend_.cancelled() == 1; }));
}

TEST_F(TransportTest, AClosedConnectionCancelsWithMoreRequestsBehind) {
  backend_.control->advance.Close();
  {
    RawClient client(port_);
    client.Send(Request("/v1/classify", kClassify));
    ASSERT_TRUE(backend_.control->advance.AwaitWaiting(1, absl::Seconds(20)));
    client.Send(Request("/v1/classify", kClassify));
  }
  EXPECT_TRUE(Eventually([&] { return backend_.cancelled() == 1; }));
}

TEST_F(TransportTest, PipelinedAnswersKeepTheirOrder) {
  RawClient client(port_);
  std::string requests;
  constexpr int kRequests = 50;
  for (int i = 0; i < kRequests; ++i) {
    const std::string id = "X-Request-Id: r" + std::to_string(i) + "\r\n";
    requests += i % 3 == 0 ? "GET /livez HTTP/1.1\r\nHost: t\r\n" + id + "\r\n"
                           : Request("/v1/classify", kClassify, id);
  }
  client.Send(requests);
  for (int i = 0; i < kRequests; ++i) {
    const auto response = client.Read();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->Header("x-request-id"), "r" + std::to_string(i));
  }
}

TEST_F(TransportTest, HeadHasTheLengthButNotTheBody) {
  RawClient client(port_);
  client.Send("HEAD /version HTTP/1.1\r\nHost: t\r\n\r\nGET /version HTTP/1.1\r\nHost: t\r\n\r\n");
  const auto head = client.Read(true);
  const auto get = client.Read();
  ASSERT_TRUE(head && get);
  EXPECT_EQ(head->Header("Content-Length"), get->Header("Content-Length"));
  EXPECT_TRUE(head->body.empty());
  EXPECT_FALSE(get->body.empty());
}

TEST_F(TransportTest, StopLetsAnswersUnderWayFinish) {
  backend_.control->advance.Close();
  RawClient busy(port_);
  RawClient idle(port_);
  busy.Send(Request("/v1/classify", kClassify));
  ASSERT_TRUE(backend_.control->advance.AwaitWaiting(1, absl::Seconds(20)));
  std::thread stop([&] { server_->Stop(server::SteadyNow() + absl::Seconds(20)); });
  EXPECT_TRUE(idle.ClosesWithin(20));
  backend_.control->advance.Open();
  const auto response = busy.Read();
  stop.join();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->Header("Connection"), "close");
  EXPECT_THROW(RawClient client(port_), std::runtime_error);
}

TEST_F(TransportTest, StopAnswersWhatIsLateAndCancelsIt) {
  backend_.control->advance.Close();
  RawClient client(port_);
  client.Send(Request("/v1/classify", kClassify));
  ASSERT_TRUE(backend_.control->advance.AwaitWaiting(1, absl::Seconds(20)));
  server_->Stop(server::SteadyNow() + absl::Milliseconds(20));
  EXPECT_EQ(backend_.cancelled(), 1);
  const auto response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 503);
  EXPECT_EQ(Body(*response)["error"]["code"], "UNAVAILABLE");
  EXPECT_NE(response->Header("Retry-After"), "");
  EXPECT_EQ(response->Header("Connection"), "close");
  EXPECT_TRUE(client.ClosesWithin(20));
  backend_.control->advance.Open();
}

TEST_F(TransportTest, ATakenPortIsAnError) {
  server::HttpServerOptions options;
  options.transport.port = port_;
  server::HttpServer second(backend_.api, backend_.metrics, std::move(options));
  const auto port = second.Start();
  EXPECT_EQ(port.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(port.status().message().find(std::to_string(port_)), absl::string_view::npos);
}

TEST_F(TransportTest, ManyClientsThatLeaveAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 250; ++i) {
        RawClient client(port_);
        client.Send(Request("/v1/classify", kClassify));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Post("/v1/classify", kClassify).status, 200);
  EXPECT_TRUE(Eventually([&] { return backend_.control->live_items == 0; }));
}

}  // namespace
}  // namespace longview::testing
