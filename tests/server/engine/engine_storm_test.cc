// Many calls at once: cancelled, expiring, failing, with neighbours that must not notice.
#include <random>
#include <thread>
#include <vector>

#include "tests/server/engine/engine_fixture.h"

namespace longview::server {
namespace {

using testing::FakeLogits;
using testing::FakeOptions;

class EngineStormTest : public EngineFixture {};

struct Tally {
  std::atomic<int> replies{0}, answered{0}, cancelled{0}, late{0}, other{0}, wrong{0};

  Reply<Completed> Expecting(std::string text) {
    return [this, text = std::move(text)](absl::StatusOr<Completed> result) {
      switch (result.status().code()) {
        case absl::StatusCode::kOk: {
          const auto floats = result->answer.Find("logits")->floats();
          const std::vector<float> logits(floats.begin(), floats.end());
          if (logits != FakeLogits(text, 3)) ++wrong;
          ++answered;
          break;
        }
        case absl::StatusCode::kCancelled:
          ++cancelled;
          break;
        case absl::StatusCode::kDeadlineExceeded:
          ++late;
          break;
        default:
          ++other;
      }
      ++replies;
    };
  }
};

TEST_F(EngineStormTest, TenThousandCancelledCallsLeaveNothingBehind) {
  options_.scheduler.max_queue_seconds = 1e9;
  StartEngine();
  FakeOptions options;
  options.layers = 8;
  // The clients let the device through: one layer for so many calls. So at most 20 batches, of no
  // more than 64 calls of each client, are computed before the last calls are cancelled.
  constexpr int kCallsOfALayer = 64;
  options.control->advance.Close();
  const ModelHandle model = MakeModel(options);
  constexpr int kThreads = 4;
  constexpr int kPerThread = 2500;
  Tally tally;
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<CallId> open;
      for (int i = 0; i < kPerThread; ++i) {
        const std::string text = std::to_string(t) + "/" + std::to_string(i);
        open.push_back(engine_->Submit(model, TextRequest(text), Info(std::to_string(t)),
                                       tally.Expecting(text)));
        if (i % kCallsOfALayer == 0) options.control->advance.Admit(1);
        // Some are cancelled at once, others when they are deep in the queue or running.
        while (!open.empty() && (open.size() > random() % 64 || i + 1 == kPerThread)) {
          const size_t which = random() % open.size();
          engine_->Cancel(open[which]);
          open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  options.control->advance.Open();
  EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(30)));
  Await([&] { return tally.replies == kThreads * kPerThread; }, "all replies");
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_EQ(tally.other, 0);
  EXPECT_EQ(tally.answered + tally.cancelled, kThreads * kPerThread);
  EXPECT_GT(tally.cancelled, kThreads * kPerThread / 4);
  // A call leaves the table a moment before it is destroyed.
  Await([&] { return options.control->live_items == 0; }, "the items' end");
  EXPECT_EQ(options.control->live_runs, 0);
  EXPECT_EQ(engine_->calls(), 0u);
  EXPECT_EQ(engine_->QueuedSeconds(), 0);
}

TEST_F(EngineStormTest, NeighboursAnswersAreUnchanged) {
  options_.scheduler.max_queue_seconds = 1e9;
  StartEngine();
  FakeOptions options;
  options.layers = 4;
  options.layer_item_time = absl::Microseconds(10);
  const ModelHandle one = MakeModel(options, "one");
  const ModelHandle two = MakeModel(options, "two");
  Tally steady, chaos;
  constexpr int kSteady = 1000;
  std::atomic<bool> stop = false;
  std::atomic<int> sent{0};
  std::thread disturber([&] {
    std::mt19937 random(7);
    while (!stop && sent < 20000) {
      const ModelHandle& model = random() % 2 == 0 ? one : two;
      std::string text(1 + random() % 50, 'z');
      if (random() % 8 == 0) text = std::string(5000, 'z');  // Refused by Prepare.
      const auto due = random() % 3 == 0 ? absl::Microseconds(300) : absl::InfiniteDuration();
      const CallId id =
          engine_->Submit(model, TextRequest(text), Info("chaos", due), chaos.Expecting(text));
      ++sent;
      if (random() % 2 == 0) engine_->Cancel(id);
      if (random() % 16 == 0) absl::SleepFor(absl::Microseconds(100));
    }
  });
  for (int i = 0; i < kSteady; ++i) {
    const std::string text = "steady " + std::to_string(i);
    engine_->Submit(i % 2 == 0 ? one : two, TextRequest(text), Info("steady"),
                    steady.Expecting(text));
    if (i % 4 == 0) absl::SleepFor(absl::Microseconds(100));
  }
  Await([&] { return steady.replies == kSteady; }, "the steady client's answers");
  stop = true;
  disturber.join();
  EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(30)));
  Await([&] { return chaos.replies == sent; }, "the other client's replies");
  EXPECT_EQ(steady.answered, kSteady);
  EXPECT_EQ(steady.wrong, 0);
  EXPECT_EQ(chaos.wrong, 0);
  Await([&] { return options.control->live_items == 0; }, "the items' end");
}

}  // namespace
}  // namespace longview::server
