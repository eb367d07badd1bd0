// The whole server over fake generators: what is left of a stream whose client has gone, as its
// metrics tell, and who waits where two models reserve from one memory.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "longview/v1/models.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "server/app/server.h"
#include "tests/server/http/raw_client.h"
#include "tests/support/fake_generator.h"
#include "tests/support/temp_directory.h"

namespace longview::server {
namespace {

using testing::FakeContinuation;
using testing::RawClient;

constexpr int kLayers = 2;

// A streaming call that can be left in the middle.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual bool ReadPiece() = 0;
  virtual void Leave() = 0;
};

class GrpcStream final : public Stream {
 public:
  GrpcStream(longview::v1::TextService::Stub& stub, const std::string& model, int tokens) {
    longview::v1::GenerateRequest request;
    request.set_model(model);
    request.set_text("Once");
    request.set_max_tokens(tokens);
    reader_ = stub.Generate(&context_, request);
  }
  ~GrpcStream() override { context_.TryCancel(); }

  bool ReadPiece() override {
    if (!reader_->Read(&message_)) return false;
    text += message_.text();
    return true;
  }
  void Leave() override { context_.TryCancel(); }
  grpc::Status Finish() { return reader_->Finish(); }

  std::string text;

 private:
  grpc::ClientContext context_;
  longview::v1::GenerateResponse message_;
  std::unique_ptr<grpc::ClientReader<longview::v1::GenerateResponse>> reader_;
};

class HttpStream final : public Stream {
 public:
  HttpStream(int port, const std::string& model, int tokens) : client_(port) {
    const std::string body = absl::StrCat(R"({"model":")", model, R"(","prompt":"Once",)",
                                          R"("stream":true,"max_tokens":)", tokens, "}");
    client_.Send(absl::StrCat("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ",
                              body.size(), "\r\n\r\n", body));
  }

  // The first is the answer's head.
  bool ReadPiece() override {
    if (headed_) return client_.ReadChunk().has_value();
    headed_ = true;
    const auto head = client_.Read();
    return head.has_value() && head->status == 200;
  }
  void Leave() override { client_.Close(); }

 private:
  RawClient client_;
  bool headed_ = false;
};

class StreamEnd : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Config config;
    config.models = {models_.path()};
    config.host = "127.0.0.1";
    config.grpc_port = config.http_port = 0;
    config.max_message_bytes = 64 << 20;
    config.max_queue_seconds = 1000;
    config.cache_bytes = kCacheBytes;
    config.allow_model_control = true;
    for (const char* name : {"one", "two"}) {
      models_.Write(absl::StrCat(name, "/config.json"), "{}");
    }
    server_ = std::make_unique<Server>(config, log_, nullptr,
                                       [this](const std::string& path, const std::string&) {
                                         testing::GeneratorOptions options;
                                         options.layers = kLayers;
                                         options.token_bytes = 1;
                                         const bool slow = absl::EndsWith(path, "one");
                                         options.control = slow ? one_ : two_;
                                         options.pace = slow ? 50 : 0;  // A millisecond a step.
                                         return absl::StatusOr<std::unique_ptr<models::Model>>(
                                             std::make_unique<testing::FakeGenerator>(options));
                                       });
    std::atomic<bool> warm = false;
    ASSERT_TRUE(server_->Start([&warm](absl::Status) { warm = true; }).ok());
    Await([&] { return warm.load(); }, "the models");
    server_->BeReady();
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->ports().grpc),
                                   grpc::InsecureChannelCredentials());
    text_ = longview::v1::TextService::NewStub(channel_);
  }

  void TearDown() override {
    one_->advance.Open();
    two_->advance.Open();
    if (server_ != nullptr) server_->Stop(absl::Now());
  }

  std::unique_ptr<Stream> Open(const std::string& model, int tokens) {
    if (std::string(GetParam()) == "http") {
      return std::make_unique<HttpStream>(server_->ports().http, model, tokens);
    }
    return std::make_unique<GrpcStream>(*text_, model, tokens);
  }

  // Value of the series that begins so; -1 if there is none.
  double Metric(const std::string& series) const {
    const std::string all = testing::Fetch(server_->ports().http, "GET", "/metrics").body;
    for (const absl::string_view line : absl::StrSplit(all, '\n')) {
      if (!absl::StartsWith(line, series)) continue;
      return std::strtod(std::string(line.substr(line.rfind(' ') + 1)).c_str(), nullptr);
    }
    return -1;
  }
  double CacheBytes(const std::string& model) const {
    return Metric("longview_generation_cache_bytes{model=\"" + model + "\"");
  }
  double Queued(const std::string& model) const {
    return Metric("longview_queued_requests{model=\"" + model + "\"");
  }

  template <typename Condition>
  static void Await(Condition condition, const char* what) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!condition()) {
      ASSERT_LT(absl::Now(), end) << "waiting for " << what;
      absl::SleepFor(absl::Milliseconds(2));
    }
  }

  static constexpr uint64_t kCacheBytes = 150'000;

  testing::TempDirectory models_;
  Log log_{LogFormat::kJson, LogLevel::kError};
  std::shared_ptr<testing::GeneratorControl> one_ = std::make_shared<testing::GeneratorControl>();
  std::shared_ptr<testing::GeneratorControl> two_ = std::make_shared<testing::GeneratorControl>();
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<longview::v1::TextService::Stub> text_;
};

TEST_P(StreamEnd, StateGoesWithTheStepInWhichItsClientLeft) {
  const auto stays = Open("one", 50'000), leaves = Open("one", 50'000);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stays->ReadPiece() && leaves->ReadPiece());
  one_->advance.Close();
  ASSERT_TRUE(one_->advance.AwaitWaiting(1, absl::Seconds(60)));
  const double both = CacheBytes("one");
  const int64_t steps = one_->steps;
  leaves->Leave();
  Await([&] { return Metric("longview_cancelled_total{model=\"one\",stage=\"running\"") == 1; },
        "the server to hear of it");
  // The rest of the step that runs, and no more than the beginning of another.
  one_->advance.Admit(kLayers);
  Await([&] { return one_->live_generations == 1; }, "the state's end");
  EXPECT_LE(one_->steps, steps + 1);
  EXPECT_LT(CacheBytes("one"), both);
  EXPECT_EQ(CacheBytes("one"), static_cast<double>(one_->state_bytes));
  one_->advance.Open();
  stays->Leave();
  Await([&] { return CacheBytes("one") == 0; }, "an idle server");
  EXPECT_EQ(one_->state_bytes, 0);
}

// Two models reserve from one memory: what does not fit beside the other's waits for it, also
// while the other is being unloaded, and has the memory once that is gone.
TEST_P(StreamEnd, OneModelWaitsForAnothersMemoryWhileThatIsUnloaded) {
  const auto holds = Open("one", 90'000);  // For minutes, if nobody leaves.
  ASSERT_TRUE(holds->ReadPiece());
  GrpcStream waits(*text_, "two", 70'000);
  Await([&] { return Queued("two") == 1; }, "the second model's request to wait");
  EXPECT_EQ(two_->live_generations, 0);

  grpc::ClientContext context;
  longview::v1::UnloadModelRequest unload;
  unload.set_model("one");
  const auto models = longview::v1::ModelService::NewStub(channel_);
  longview::v1::Model unloaded;
  std::atomic<bool> done = false;
  grpc::Status status;
  models->async()->UnloadModel(&context, &unload, &unloaded, [&](grpc::Status ended) {
    status = std::move(ended);
    done = true;
  });
  Await([&] { return Metric("longview_model_ready{model=\"one\"") == 0; }, "the unload to begin");
  EXPECT_FALSE(done);
  EXPECT_EQ(two_->live_generations, 0);
  EXPECT_EQ(Queued("two"), 1);

  holds->Leave();
  Await([&] { return done.load(); }, "the unload");
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(one_->state_bytes, 0);
  EXPECT_EQ(CacheBytes("one"), 0);
  while (waits.ReadPiece()) {
  }
  EXPECT_TRUE(waits.Finish().ok());
  EXPECT_EQ(waits.text, FakeContinuation("Once", 0, 70'000));
}

INSTANTIATE_TEST_SUITE_P(Transports, StreamEnd, ::testing::Values("grpc", "http"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace longview::server
