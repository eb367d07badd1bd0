// How long things take, may take, and seem to take; and what ends a request but not the process.
#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "server/errors.h"
#include "tests/server/engine/engine_fixture.h"

namespace longview::server {
namespace {

using absl::StatusCode;
using testing::FakeOptions;

class EngineTimeTest : public EngineFixture {
 protected:
  // A model whose first layer blocks until the gate opens.
  ModelHandle MakeBlocked(FakeOptions options = {}) {
    control_ = options.control;
    control_->advance.Close();
    return MakeModel(std::move(options));
  }
  void AwaitBlocked() { ASSERT_TRUE(control_->advance.AwaitWaiting(1, absl::Seconds(20))); }

  std::shared_ptr<testing::FakeControl> control_;
};

TEST_F(EngineTimeTest, WarmUpBesideNeighboursIsCorrectedByAHandfulOfRequests) {
  options_.scheduler.max_queue_seconds = 100;
  StartEngine();
  FakeOptions options;  // Ten thousand times what it takes.
  options.item_seconds = 50;
  options.token_seconds = 0;
  options.layer_item_time = absl::Milliseconds(5);
  const ModelHandle model = MakeModel(options);
  const auto estimate = [&] {
    ReplyBox<Estimated> box;
    engine_->Estimate(model, TextRequest("x"), 0, Info(), nullptr, box.reply());
    return box.Wait()->cost.seconds;
  };
  EXPECT_DOUBLE_EQ(estimate(), 50);
  Box refused;
  Submit(model, "x", refused, Info("a", absl::Seconds(40)));
  EXPECT_EQ(refused.WaitCode(), StatusCode::kDeadlineExceeded);
  for (int i = 0; i < 6; ++i) {
    Box box;
    Submit(model, "x", box);
    ASSERT_TRUE(box.Wait().ok());
  }
  EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(20)));
  const double corrected = estimate();
  EXPECT_LT(corrected, 1);
  EXPECT_GE(corrected, 0.004);
  Box in_time;
  Submit(model, "x", in_time, Info("a", absl::Seconds(40)));
  EXPECT_TRUE(in_time.Wait().ok());
  // A flood that the first prediction would have refused.
  options.control->advance.Close();
  std::vector<Box> flood(8);
  Submit(model, "x", flood[0]);
  ASSERT_TRUE(options.control->advance.AwaitWaiting(1, absl::Seconds(20)));
  for (size_t i = 1; i < flood.size(); ++i) Submit(model, "x", flood[i]);
  AwaitQueued(7);
  // The gauge, printed with six digits, and an estimate's wait say the same.
  const double queued = Metric("longview_queued_work_seconds{");
  EXPECT_LT(queued, 70);
  ReplyBox<Estimated> wait;
  engine_->Estimate(model, TextRequest("x"), 0, Info(), nullptr, wait.reply());
  EXPECT_GE(wait.Wait()->queue_seconds, queued * (1 - 1e-5));
  EXPECT_LT(wait.Wait()->queue_seconds, queued + 10) << "and what runs";
  options.control->advance.Open();
  for (Box& box : flood) EXPECT_TRUE(box.Wait().ok());
}

TEST_F(EngineTimeTest, CallsWithoutADeadlineHaveTheServers) {
  options_.default_timeout = absl::Milliseconds(100);
  options_.max_timeout = absl::Milliseconds(300);
  options_.scheduler.max_queue_seconds = 1000;
  StartEngine();
  FakeOptions options;
  options.item_seconds = 60;  // Not a reason to refuse what the client set no deadline for.
  const ModelHandle model = MakeBlocked(options);
  Box running, queued, patient, hasty;
  // On a busy machine the limit of some passes before they run.
  Await(
      [&] {
        running = Box();
        Submit(model, "x", running);
        while (running.count() == 0) {
          if (control_->advance.AwaitWaiting(1, absl::Milliseconds(1))) return true;
        }
        return false;
      },
      "a running request");
  Submit(model, "x", queued);
  const absl::Time start = SteadyNow();
  Submit(model, "x", patient, Info("a", absl::Hours(1)));
  for (Box* box : {&running, &queued, &patient}) {
    EXPECT_EQ(box->WaitCode(), StatusCode::kDeadlineExceeded);
  }
  EXPECT_GE(SteadyNow() - start, absl::Milliseconds(300));
  EXPECT_EQ(running.Wait().status().message(),
            "the server's time limit of 0.1 s (default_timeout_seconds, max_timeout_seconds) "
            "passed while the request was running");
  EXPECT_NE(patient.Wait().status().message().find("limit of 0.3 s"), absl::string_view::npos);
  // The client's own are judged as ever.
  Submit(model, "x", hasty, Info("a", absl::Milliseconds(100)));
  EXPECT_EQ(GetErrorDetail(hasty.Wait().status()).reason, "DEADLINE_INFEASIBLE");
  control_->advance.Open();
}

TEST_F(EngineTimeTest, TurnThatNeverComesBackNamesItsModel) {
  options_.stall_patience = absl::Milliseconds(1);
  options_.watch_factor = 10;
  options_.watch_floor = absl::Milliseconds(50);
  StartEngine();
  FakeOptions options;
  options.item_seconds = 0.002;
  options.token_seconds = 0;
  options.layers = 2000;
  const ModelHandle model = MakeBlocked(options);
  Box running, queued;
  engine_->Submit(model, TokenRequest(), Info(), running.reply());
  AwaitBlocked();
  engine_->Submit(model, TokenRequest(), Info(), queued.reply());
  Await([&] { return !engine_->Stuck().empty(); }, "the watchdog");
  EXPECT_EQ(engine_->Stuck().find("model fake on cpu: nothing came back for "), 0u);
  EXPECT_NE(engine_->Stuck().find("predicted to take 0.002 s"), std::string::npos);
  // A layer that comes back is progress, until the next one is overdue.
  Await(
      [&] {
        control_->advance.Admit(1);
        return engine_->Stuck().empty();
      },
      "progress");
  EXPECT_EQ(running.count(), 0);
  control_->advance.Open();
  EXPECT_TRUE(queued.Wait().ok());
  Await([&] { return engine_->Stuck().empty(); }, "an idle device");
}

TEST_F(EngineTimeTest, WarmUpThatNeverComesBackIsNoProgress) {
  options_.stall_patience = absl::Milliseconds(1);
  options_.watch_floor = absl::Milliseconds(50);
  StartEngine();
  const ModelHandle model = MakeModel({});
  testing::Gate gate;
  gate.Close();
  std::thread warm_up([&] {
    EXPECT_TRUE(engine_
                    ->RunOnDevice("cpu", "large",
                                  [&] {
                                    gate.Pass();
                                    return absl::OkStatus();
                                  })
                    .ok());
  });
  ASSERT_TRUE(gate.AwaitWaiting(1, absl::Seconds(20)));
  Box box;
  engine_->Submit(model, TokenRequest(), Info(), box.reply());
  Await([&] { return !engine_->Stuck().empty(); }, "the watchdog");
  EXPECT_EQ(engine_->Stuck().find("model large on cpu: "), 0u);
  gate.Open();
  EXPECT_TRUE(box.Wait().ok());
  warm_up.join();
  Await([&] { return engine_->Stuck().empty(); }, "an idle device");
}

TEST_F(EngineTimeTest, WantOfMemoryEndsARequestAndNotTheProcess) {
  StartEngine();
  const ModelHandle model = MakeModel({});
  // An answer for which its transport finds no memory.
  Box box;
  std::atomic<int> calls = 0;
  engine_->Submit(model, TextRequest("x"), Info(),
                  [&, reply = box.reply()](absl::StatusOr<Completed> completed) mutable {
                    ++calls;
                    if (completed.ok()) throw std::bad_alloc();
                    reply(std::move(completed));
                  });
  EXPECT_EQ(box.WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorDetail(box.Wait().status()).reason, "MEMORY_FULL");
  EXPECT_EQ(calls, 2);
  // Not even for the error.
  std::atomic<bool> told = false;
  engine_->Submit(model, TextRequest("x"), Info(), [&](absl::StatusOr<Completed> completed) {
    told = !completed.ok();
    throw std::bad_alloc();
  });
  Await([&] { return told.load(); }, "the error");
  Box good;
  Submit(model, "x", good);
  EXPECT_TRUE(good.Wait().ok());
}

}  // namespace
}  // namespace longview::server
