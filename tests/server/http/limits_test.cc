// At the limits of connections, bytes, time and the queue: who is refused, and who makes room.
#include <memory>
#include <string>
#include <vector>

#include "server/limits/byte_budget.h"
#include "tests/server/http/server_fixture.h"
#include "tests/server/limits/heard_ends.h"

namespace longview::testing {
namespace {

constexpr std::string_view kProbe = "GET /livez HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr int kConnections = 4;

class ConnectionLimitTest : protected WithHeardEnds, public HttpServerTest {
 protected:
  ConnectionLimitTest()
      : HttpServerTest([this](server::HttpServerOptions& options) {
          options.transport.ends = ends.Listener();
          options.transport.connections = {.total = kConnections, .per_address = kConnections};
        }) {
    for (int i = 0; i < kConnections; ++i) clients_.push_back(std::make_unique<RawClient>(port_));
  }

  std::vector<std::unique_ptr<RawClient>> clients_;
};

TEST_F(ConnectionLimitTest, AnIdleOneMakesRoom) {
  for (const auto& client : clients_) {
    client->Send(kProbe);
    EXPECT_EQ(client->Read()->status, 200);
  }
  RawClient more(port_);
  more.Send(kProbe);
  EXPECT_EQ(more.Read().value_or(RawResponse{}).status, 200);
  int open = 0;
  for (const auto& client : clients_) {
    client->Send(kProbe);
    open += client->Read().has_value() ? 1 : 0;
  }
  EXPECT_EQ(open, kConnections - 1);
  EXPECT_EQ(ends.Count(server::EndCause::kRoom), 1);
}

TEST_F(ConnectionLimitTest, HalfSentHeadsMakeRoom) {
  for (const auto& client : clients_) client->Send("GET /livez HTTP/1.1\r\nHost");
  EXPECT_EQ(Get("/livez").status, 200);
}

TEST_F(ConnectionLimitTest, ConnectionsAtWorkAreNotClosed) {
  backend_.control->advance.Close();
  for (const auto& client : clients_) client->Send(Request("/v1/classify", kClassify));
  ASSERT_TRUE(backend_.control->advance.AwaitWaiting(1, absl::Seconds(20)));
  EXPECT_TRUE(Eventually([&] { return backend_.prepared() == kConnections; }));
  RawClient more(port_);
  const auto refused = more.Read();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 503);
  EXPECT_NE(refused->Header("Retry-After"), "");
  EXPECT_NE(refused->Header("retry-after-ms"), "");
  EXPECT_EQ(ends.Count(server::EndCause::kLimit), 1);
  backend_.control->advance.Open();
  for (const auto& client : clients_) {
    EXPECT_EQ(client->ReadFinal().value_or(RawResponse{}).status, 200);
  }
  EXPECT_EQ(Get("/livez").status, 200);
}

class SlowClientTest : protected WithHeardEnds, public ImpatientServerTest {
 protected:
  SlowClientTest()
      : ImpatientServerTest([this](server::HttpServerOptions& options) {
          options.transport.ends = ends.Listener();
        }) {}
};

TEST_F(SlowClientTest, ItsEndIsTold) {
  RawClient idle(port_), head(port_), body(port_);
  head.Send("GET /livez HTTP/1.1\r\nHost");
  body.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n{");
  EXPECT_EQ(head.Read().value_or(RawResponse{}).status, 408);
  EXPECT_EQ(body.Read().value_or(RawResponse{}).status, 408);
  EXPECT_TRUE(idle.ClosesWithin(20));
  EXPECT_EQ(ends.Count(server::EndCause::kSlow), 2) << "between requests a client owes nothing";
}

struct WithBudget {
  server::ByteBudget budget{{.total = 300'000, .per_client = 150'000}};
};

class ByteLimitTest : protected WithBudget, public HttpServerTest {
 protected:
  ByteLimitTest()
      : HttpServerTest(
            [this](server::HttpServerOptions& options) { options.transport.bytes = &budget; }) {}

  bool NothingIsHeld() {
    return Eventually([&] { return budget.held() == 0; });
  }
};

TEST_F(ByteLimitTest, BodiesOfOneClientHaveALimitTogether) {
  const std::string spaces(80'000, ' ');
  {
    RawClient held(port_);
    held.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nContent-Length: 90000\r\n\r\n" + spaces);
    ASSERT_TRUE(Eventually([&] { return budget.held() >= 120'000; }));
    const RawResponse refused = Post("/v1/classify", spaces);
    EXPECT_EQ(refused.status, 429) << refused.body;
    EXPECT_NE(refused.Header("Retry-After"), "");
    EXPECT_EQ(Post("/v1/classify", kClassify).status, 200);  // Short ones are not counted.
  }
  ASSERT_TRUE(NothingIsHeld());
  EXPECT_EQ(Post("/v1/classify", std::string(kClassify) + spaces).status, 200);
  EXPECT_TRUE(NothingIsHeld());
}

TEST_F(ByteLimitTest, ChunkedBodiesCountToo) {
  auto other = budget.TryReserve("127.0.0.1", 100'000);
  ASSERT_TRUE(other.ok());
  RawClient client(port_);
  client.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "4e20\r\n" + std::string(20'000, ' ') + "\r\n";
  for (int i = 0; i < 6 && client.Send(chunk); ++i) {
  }
  const auto refused = client.Read();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 429);
  client.Close();
  other->Reset();
  EXPECT_TRUE(NothingIsHeld());
}

TEST_F(ByteLimitTest, AnswersCountUntilTheyAreRead) {
  FakeOptions wide;
  wide.tasks = {models::Task::kEmbedding};
  wide.embedding_width = 10'000;
  backend_.store.Add("wide", wide);
  const std::string_view ask = R"({"model":"wide","input":"x"})";
  EXPECT_EQ(Post("/v1/embeddings", ask).status, 200);
  EXPECT_TRUE(NothingIsHeld());
  auto other = budget.TryReserve("127.0.0.1", 100'000);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(Post("/v1/embeddings", ask).status, 429);
  other->Reset();
  EXPECT_EQ(Post("/v1/embeddings", ask).status, 200);
}

using WorkLimitTest = HttpServerTest;

TEST_F(WorkLimitTest, DeadlinesOfHeaders) {
  EXPECT_EQ(Post("/v1/classify", kClassify, "Grpc-Timeout: 30S\r\n").status, 200);
  backend_.AddSlow();
  const RawResponse slow =
      Post("/v1/classify", R"({"model":"slow","text":"a page"})", "Grpc-Timeout: 30S\r\n");
  EXPECT_EQ(slow.status, 504);
  const double left = Backend::SecondsLeft(Message(slow));
  EXPECT_LE(left, 30) << Message(slow);
  EXPECT_GT(left, 20) << Message(slow);
  const RawResponse late = Post("/v1/classify", kClassify,
                                "X-Envoy-Expected-Rq-Timeout-Ms: 1\r\n"
                                "Grpc-Timeout: 1n\r\n");
  EXPECT_EQ(late.status, 504);
  EXPECT_EQ(late.Header("x-should-retry"), "false");
  EXPECT_EQ(Body(late)["error"]["type"], "timeout_error");
  EXPECT_EQ(Post("/v1/classify", kClassify, "Grpc-Timeout: soon\r\n").status, 400);
}

TEST_F(WorkLimitTest, FullQueue) {
  backend_.FillQueue("127.0.0.1");
  const RawResponse full = Post("/v1/classify", kClassify);
  EXPECT_EQ(full.status, 429);
  const int millis = std::stoi(std::string(full.Header("retry-after-ms")));
  EXPECT_GE(millis, 1500);
  EXPECT_LE(millis, 3000);
  EXPECT_EQ(full.Header("Retry-After"), std::to_string((millis + 999) / 1000));
  EXPECT_EQ(Body(full)["error"]["type"], "rate_limit_error");
}

}  // namespace
}  // namespace longview::testing
