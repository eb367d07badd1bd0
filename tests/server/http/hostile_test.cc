// Clients that send too much, too slowly or read too little: each costs a bounded amount of memory
// and time, and its neighbours nothing.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "server/http/body_workers.h"
#include "tests/server/http/server_fixture.h"
#include "tests/server/limits/heard_ends.h"

namespace longview::testing {
namespace {

using ::testing::HasSubstr;

size_t ResidentBytes() {
  size_t total = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

constexpr size_t kMegabyte = size_t{1} << 20;

class HostileTest : public HttpServerTest {
 protected:
  // The server's answer to `head` followed by `piece` again and again, until it closes or `most`
  // pieces are sent.
  std::optional<RawResponse> Flood(std::string_view head, const std::string& piece, int most) {
    RawClient client(port_);
    client.Send(head);
    for (int i = 0; i < most && client.Send(piece); ++i) {
    }
    return client.ReadFinal();
  }
};

// With hours for whoever sends or reads slowly, and no time for whoever pauses.
class PauseTest : protected WithHeardEnds, public ImpatientServerTest {
 protected:
  PauseTest()
      : ImpatientServerTest([this](server::HttpServerOptions& options) {
          options.transport.ends = ends.Listener();
          options.transport.min_rate = 1000;
          options.transport.header_timeout = absl::Seconds(20);
        }) {}
};

constexpr std::string_view kChunked =
    "POST /v1/classify HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST_F(HostileTest, EndlessChunkHeadsAndTrailersAre400) {
  const std::string piece(kMegabyte, 'x');
  std::string fields;
  while (fields.size() < kMegabyte) fields += "X-Trailer: value\r\n";
  for (const auto& [start, more] : {std::pair<std::string, std::string>{"5;", piece},
                                    {"0\r\n", fields},
                                    {std::string("0;"), piece}}) {
    const size_t before = ResidentBytes();
    const auto response = Flood(std::string(kChunked) + start, more, 64);
    ASSERT_TRUE(response.has_value()) << start;
    EXPECT_EQ(response->status, 400) << start;
    EXPECT_THAT(Message(*response), HasSubstr("16384")) << start;
    EXPECT_LT(ResidentBytes(), before + 16 * kMegabyte) << start;
  }
}

TEST_F(HostileTest, ChunksOfOneByteCostWhatTheyHold) {
  std::string body;
  for (const char c : kClassify) body.append("1;x\r\n").append(1, c).append("\r\n");
  const auto response = Flood(std::string(kChunked) + body + "0\r\nX: y\r\n\r\n", "", 0);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 200) << response->body;
}

TEST_F(HostileTest, PathsThatTakeNoBodyReadNone) {
  for (const char* path : {"/livez", "/metrics", "/", "/v1/models", "/v2/models/one"}) {
    for (const char* framing : {"Content-Length: 100000000", "Transfer-Encoding: chunked"}) {
      const std::string head = std::string("GET ").append(path).append(" HTTP/1.1\r\nHost: t\r\n");
      const auto response = Flood(head + framing + "\r\n\r\n5\r\nhello\r\n", "", 0);
      ASSERT_TRUE(response.has_value()) << path;
      EXPECT_EQ(response->status, 413) << path << framing;
      EXPECT_EQ(response->Header("Connection"), "close");
      EXPECT_NE(response->body.find("takes no body"), std::string::npos) << response->body;
    }
  }
}

TEST_F(HostileTest, AnEmptyBodyIsNone) {
  RawClient client(port_);
  client.Send(
      "GET /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n"
      "GET /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 200);
  EXPECT_EQ(client.Read()->status, 200);
}

TEST_F(HostileTest, WhatCannotBeServedIsSaidBeforeTheBody) {
  const auto status_of = [&](const char* line) {
    const auto response =
        Flood(std::string(line) + " HTTP/1.1\r\nHost: t\r\nContent-Length: 150000\r\n\r\n", "", 0);
    return response ? response->status : 0;
  };
  EXPECT_EQ(status_of("POST /nowhere"), 404);
  EXPECT_EQ(status_of("POST /livez"), 405);
  EXPECT_EQ(status_of("PUT /v1/classify"), 405);
  EXPECT_EQ(status_of("POST /v2/repository/index"), 413);
}

TEST_F(HostileTest, ManyFieldsAndLongTargetsAre431) {
  const auto fields = Flood("GET /livez HTTP/1.1\r\n", "a:b\r\n", 5000);
  ASSERT_TRUE(fields.has_value());
  EXPECT_EQ(fields->status, 431);
  const auto query = Flood("GET /livez?", std::string(1000, 'q'), 1000);
  ASSERT_TRUE(query.has_value());
  EXPECT_EQ(query->status, 431);
  EXPECT_EQ(Get("/livez?" + std::string(8000, 'q')).status, 200);
}

TEST_F(HostileTest, RequestsBehindTheOneAtWorkWaitInTheSocket) {
  backend_.control->advance.Close();
  RawClient client(port_);
  client.Send(Request("/v1/classify", kClassify));
  ASSERT_TRUE(backend_.control->advance.AwaitWaiting(1, absl::Seconds(20)));
  const size_t before = ResidentBytes();
  std::atomic<size_t> sent = 0;
  std::thread flood([&] {
    const std::string more = Request("/v1/classify", std::string(100000, ' '));
    while (sent < 64 * kMegabyte && client.Send(more)) sent += more.size();
  });
  // Until the system's buffers are full.
  for (size_t earlier = 1; sent != earlier;) {
    earlier = sent;
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_LT(ResidentBytes(), before + 16 * kMegabyte);
  EXPECT_LT(sent, 32 * kMegabyte);
  server_->Stop(server::SteadyNow());
  flood.join();
  backend_.control->advance.Open();
}

TEST_F(PauseTest, AnUploadThatPausesEnds) {
  RawClient client(port_);
  client.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nContent-Length: 190000\r\n\r\n" +
              std::string(100000, 'x'));  // At min_rate it has 100 s.
  const auto response = client.Read();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 408);
}

TEST_F(PauseTest, AReaderThatPausesIsCut) {
  FakeOptions wide;
  wide.tasks = {models::Task::kEmbedding};
  wide.embedding_width = 4'000'000;
  backend_.store.Add("wide", wide);
  RawClient client(port_);
  client.Send(Request("/v1/embeddings", R"({"model":"wide","input":"x"})"));
  ASSERT_TRUE(Eventually([&] { return ends.Count(server::EndCause::kSlow) == 1; }));
  EXPECT_LT(client.ReadToEnd().size(), 15 * kMegabyte);
  EXPECT_EQ(Get("/livez").status, 200);
}

TEST_F(HostileTest, LongAnswersAreWhole) {
  FakeOptions wide;
  wide.tasks = {models::Task::kEmbedding};
  wide.embedding_width = 300'000;
  backend_.store.Add("wide", wide);
  const auto body = Body(Post("/v1/embeddings", R"({"model":"wide","input":"x"})"));
  EXPECT_EQ(body["data"][0]["embedding"].size(), 300'000u);
}

TEST_F(HostileTest, AnswersSayThatTheServerLeaves) {
  RawClient kept(port_);
  kept.Send(Request("/v1/classify", kClassify));
  const auto first = kept.Read();
  EXPECT_EQ(first->Header("Connection"), "keep-alive");
  EXPECT_EQ(first->Header("Keep-Alive"), "timeout=120");
  server_->Drain();
  kept.Send(Request("/v1/classify", kClassify));
  const auto last = kept.Read();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->status, 200);
  EXPECT_EQ(last->Header("Connection"), "close");
  EXPECT_EQ(last->Header("Keep-Alive"), "");
  EXPECT_TRUE(kept.ClosesWithin(20));
  RawClient late(port_);  // Everything is still accepted.
  late.Send(Request("/v1/classify", kClassify));
  EXPECT_EQ(late.Read()->status, 200);
}

TEST(BodyWorkersTest, ShortBodiesNeverWaitForLongOnes) {
  server::BodyWorkers workers;
  std::promise<void> release;
  const auto wait = [gate = release.get_future().share()] { gate.wait(); };
  for (int i = 0; i < 4; ++i) {
    workers.Run(server::BodyWorkers::kVeryLong + 1, wait);
    workers.Run(server::BodyWorkers::kShort + 1, wait);
  }
  const auto self = std::this_thread::get_id();
  std::thread::id ran_on;
  workers.Run(server::BodyWorkers::kShort, [&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, self);
  release.set_value();
}

TEST(BodyWorkersTest, LongBodiesNeverWaitForVeryLongOnes) {
  server::BodyWorkers workers;
  std::promise<void> release;
  const auto wait = [gate = release.get_future().share()] { gate.wait(); };
  for (int i = 0; i < 4; ++i) workers.Run(server::BodyWorkers::kVeryLong + 1, wait);
  std::promise<std::thread::id> ran_on;
  workers.Run(server::BodyWorkers::kVeryLong,
              [&] { ran_on.set_value(std::this_thread::get_id()); });
  EXPECT_NE(ran_on.get_future().get(), std::this_thread::get_id());
  release.set_value();
}

TEST(BodyWorkersTest, ATaskThatThrowsEndsAlone) {
  server::BodyWorkers workers;
  workers.Run(server::BodyWorkers::kVeryLong + 1, [] { throw std::bad_alloc(); });
  std::promise<void> next;
  workers.Run(server::BodyWorkers::kVeryLong + 1, [&] { next.set_value(); });
  EXPECT_EQ(next.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

}  // namespace
}  // namespace longview::testing
