// Requests that are admitted together: all or none, and nothing of them is left behind.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/server/engine/engine_fixture.h"

namespace longview::server {
namespace {

using absl::StatusCode;
using testing::FakeLogits;
using testing::FakeOptions;

class GroupsTest : public EngineFixture {
 protected:
  // A model of which nothing is computed, or prepared, until the test says so.
  ModelHandle MakeModelWith(double item_seconds) {
    FakeOptions options;
    options.item_seconds = item_seconds;
    options.token_seconds = 0;
    control_ = options.control;
    control_->advance.Close();
    return MakeModel(options);
  }

  std::vector<CallId> SubmitAll(const ModelHandle& model, const std::vector<std::string>& texts,
                                std::vector<Box>& boxes, const CallInfo& info = Info()) {
    boxes.resize(texts.size());
    std::vector<models::Request> requests;
    std::vector<Reply<Completed>> replies;
    for (size_t i = 0; i < texts.size(); ++i) {
      requests.push_back(TextRequest(texts[i]));
      replies.push_back(boxes[i].reply());
    }
    return engine_->SubmitTogether(model, std::move(requests), info, std::move(replies));
  }

  void ExpectIdle() {
    control_->advance.Open();
    control_->prepare.Open();
    EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(20)));
    // A preparation that was under way when its call ended drops its item a moment later.
    Await([&] { return control_->live_items == 0; }, "the items' end");
    EXPECT_EQ(engine_->QueuedSeconds(), 0);
  }

  std::shared_ptr<testing::FakeControl> control_;
};

TEST_F(GroupsTest, EachIsAnItemOfItsOwn) {
  StartEngine();
  const ModelHandle model = MakeModelWith(1e-4);
  control_->advance.Open();
  std::vector<Box> boxes;
  EXPECT_EQ(SubmitAll(model, {"a", "bb", "ccc"}, boxes).size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(boxes[i].Wait().ok()) << boxes[i].Wait().status();
    const std::string text(i + 1, static_cast<char>('a' + i));
    EXPECT_EQ(Logits(*boxes[i].Wait()), FakeLogits(text, 3));
  }
  EXPECT_EQ(control_->begun_items, 3);
  ExpectIdle();
}

TEST_F(GroupsTest, NothingIsComputedOfAListThatDoesNotFit) {
  options_.scheduler.max_queue_seconds = 10;
  StartEngine();
  const ModelHandle model = MakeModelWith(4);
  Box running, waiting;
  Submit(model, "running", running);
  ASSERT_TRUE(control_->advance.AwaitWaiting(1, absl::Seconds(20)));
  Submit(model, "waiting", waiting);
  AwaitQueued(1);
  std::vector<Box> boxes;
  // Each alone would fit beside the one that waits; all three do not.
  SubmitAll(model, {"a", "b", "c"}, boxes);
  int full = 0;
  for (Box& box : boxes) full += box.WaitCode() == StatusCode::kResourceExhausted ? 1 : 0;
  EXPECT_GE(full, 1);
  control_->advance.Open();
  EXPECT_TRUE(running.Wait().ok());
  EXPECT_TRUE(waiting.Wait().ok());
  ExpectIdle();
  EXPECT_EQ(control_->begun_items, 2);
}

TEST_F(GroupsTest, OneThatIsWrongEndsTheOthers) {
  StartEngine();
  const ModelHandle model = MakeModelWith(1e-4);
  std::vector<Box> boxes;
  SubmitAll(model, {"a", "!prepare", "c"}, boxes);
  EXPECT_EQ(boxes[1].WaitCode(), StatusCode::kInvalidArgument);
  EXPECT_EQ(boxes[0].WaitCode(), StatusCode::kCancelled);
  EXPECT_EQ(boxes[2].WaitCode(), StatusCode::kCancelled);
  ExpectIdle();
  EXPECT_EQ(control_->begun, 0);
}

TEST_F(GroupsTest, CancelledWhileTheLastIsPrepared) {
  options_.prepare_threads = 1;
  StartEngine();
  const ModelHandle model = MakeModelWith(1e-4);
  control_->prepare.Close();
  std::vector<Box> boxes;
  const std::vector<CallId> ids = SubmitAll(model, {"a", "b"}, boxes);
  control_->prepare.Admit(1);
  Await([&] { return control_->prepared == 1; }, "one prepared");
  ASSERT_TRUE(control_->prepare.AwaitWaiting(1, absl::Seconds(20)));
  for (const CallId id : ids) engine_->Cancel(id);
  for (Box& box : boxes) EXPECT_EQ(box.WaitCode(), StatusCode::kCancelled);
  ExpectIdle();
  EXPECT_EQ(control_->begun, 0);
}

TEST_F(GroupsTest, ADeadlineThatPassesBeforeAllArePrepared) {
  options_.prepare_threads = 1;
  StartEngine();
  const ModelHandle model = MakeModelWith(1e-4);
  control_->prepare.Close();
  std::vector<Box> boxes;
  SubmitAll(model, {"a", "b"}, boxes, Info("a", absl::Milliseconds(20)));
  control_->prepare.Admit(1);
  for (Box& box : boxes) EXPECT_EQ(box.WaitCode(), StatusCode::kDeadlineExceeded);
  ExpectIdle();
  EXPECT_EQ(control_->begun, 0);
}

TEST_F(GroupsTest, ShutdownAnswersThoseThatWaitForOthers) {
  options_.prepare_threads = 1;
  StartEngine();
  const ModelHandle model = MakeModelWith(1e-4);
  control_->prepare.Close();
  std::vector<Box> boxes;
  SubmitAll(model, {"a", "b"}, boxes);
  control_->prepare.Admit(1);
  ASSERT_TRUE(control_->prepare.AwaitWaiting(1, absl::Seconds(20)));
  std::thread stopping([&] { engine_->Shutdown(); });
  for (Box& box : boxes) EXPECT_EQ(box.WaitCode(), StatusCode::kUnavailable);
  control_->prepare.Open();
  control_->advance.Open();
  stopping.join();
  EXPECT_EQ(engine_->calls(), 0u);
}

}  // namespace
}  // namespace longview::server
