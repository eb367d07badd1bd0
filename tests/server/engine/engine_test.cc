// The engine's promises, one by one, with a fake model.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "server/errors.h"
#include "tests/server/engine/engine_fixture.h"

namespace longview::server {
namespace {

using absl::StatusCode;
using testing::FakeLogits;
using testing::FakeOptions;

class EngineTest : public EngineFixture {
 protected:
  // However long a batch is blocked, what waits for it does not go between its layers.
  EngineTest() { options_.scheduler.nested_share = 0; }

  // A model whose first layer blocks until the gate opens.
  ModelHandle MakeBlocked(FakeOptions options = {}) {
    control_ = options.control;
    control_->advance.Close();
    return MakeModel(std::move(options));
  }
  void AwaitBlocked() { ASSERT_TRUE(control_->advance.AwaitWaiting(1, absl::Seconds(20))); }

  std::shared_ptr<testing::FakeControl> control_;
};

TEST_F(EngineTest, AnswersWithWhereTheTimeWent) {
  StartEngine();
  FakeOptions options;
  options.layers = 3;
  options.layer_item_time = absl::Milliseconds(2);
  Box box;
  Submit(MakeModel(options), "hello", box);
  const auto& result = box.Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Logits(*result), FakeLogits("hello", 3));
  EXPECT_EQ(result->answer.usage.input_tokens, 5);
  EXPECT_EQ(result->batch_items, 1);
  EXPECT_GE(result->compute_seconds, 0.006);
  EXPECT_GE(result->total_seconds, result->compute_seconds + result->queue_seconds);
}

TEST_F(EngineTest, RefusalsOfTheModelComeThrough) {
  StartEngine();
  Box too_long, no_task;
  const ModelHandle model = MakeModel({});
  Submit(model, std::string(5000, 'x'), too_long);
  EXPECT_EQ(too_long.WaitCode(), StatusCode::kInvalidArgument);
  models::Request request = TextRequest("x");
  request.task = models::Task::kFillMask;
  engine_->Submit(model, request, Info(), no_task.reply());
  EXPECT_EQ(no_task.WaitCode(), StatusCode::kUnimplemented);
}

TEST_F(EngineTest, FailureOfOneItemLeavesItsNeighboursAlone) {
  StartEngine();
  const ModelHandle model = MakeBlocked();
  Box first, bad, good;
  Submit(model, "first", first);
  AwaitBlocked();
  Submit(model, "this one fails !take", bad);
  Submit(model, "good", good);
  AwaitQueued(2);
  control_->advance.Open();
  EXPECT_EQ(bad.WaitCode(), StatusCode::kInternal);
  ASSERT_TRUE(good.Wait().ok());
  EXPECT_EQ(good.Wait()->batch_items, 2);
  EXPECT_EQ(Logits(*good.Wait()), FakeLogits("good", 3));
}

TEST_F(EngineTest, AnAnswerThatIsNoNumberIsAnError) {
  StartEngine();
  const ModelHandle model = MakeModel({});
  Box bad, good;
  Submit(model, "this one overflows !nan", bad);
  EXPECT_EQ(bad.WaitCode(), StatusCode::kInternal);
  EXPECT_THAT(std::string(bad.Wait().status().message()),
              ::testing::HasSubstr("gives scores that are not finite numbers"));
  Submit(model, "good", good);
  EXPECT_TRUE(good.Wait().ok());
}

TEST_F(EngineTest, BusyDeviceAccumulatesABatch) {
  StartEngine();
  const ModelHandle model = MakeBlocked();
  Box first;
  std::vector<Box> others(5);
  Submit(model, "first", first);
  AwaitBlocked();
  for (size_t i = 0; i < others.size(); ++i) Submit(model, std::string(i + 1, 'y'), others[i]);
  AwaitQueued(5);
  control_->advance.Open();
  for (size_t i = 0; i < others.size(); ++i) {
    const auto& result = others[i].Wait();
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->batch_items, 5);
    EXPECT_EQ(Logits(*result), FakeLogits(std::string(i + 1, 'y'), 3));
  }
  EXPECT_EQ(control_->begun, 2);
}

TEST_F(EngineTest, CancelWhilePreparing) {
  options_.prepare_threads = 1;
  StartEngine();
  FakeOptions options;
  options.control->prepare.Close();
  const ModelHandle model = MakeModel(options);
  Box in_prepare, in_pool;
  const CallId first = Submit(model, "a", in_prepare);
  ASSERT_TRUE(options.control->prepare.AwaitWaiting(1, absl::Seconds(20)));
  const CallId second = Submit(model, "b", in_pool);
  engine_->Cancel(first);
  engine_->Cancel(second);
  // Both are answered although the pool hangs.
  EXPECT_EQ(in_prepare.WaitCode(), StatusCode::kCancelled);
  EXPECT_EQ(in_pool.WaitCode(), StatusCode::kCancelled);
  options.control->prepare.Open();
  EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(20)));
  EXPECT_EQ(options.control->prepared, 1);
  EXPECT_EQ(options.control->begun, 0);
  EXPECT_EQ(Metric("longview_cancelled_total{model=\"fake\",stage=\"queued\",version=\"1\"}"), 2);
}

TEST_F(EngineTest, PreparationStopsOnceNobodyWaits) {
  options_.prepare_threads = 1;
  StartEngine();
  FakeOptions options;
  const ModelHandle model = MakeModel(options);
  const auto prepared = [&] { return options.control->prepared.load(); };
  Box cancelled, late, next, stopped;
  const CallId id = Submit(model, "!endless", cancelled);
  Await([&] { return prepared() == 1; }, "the first preparation");
  engine_->Cancel(id);
  EXPECT_EQ(cancelled.WaitCode(), StatusCode::kCancelled);
  Submit(model, "!endless", late, Info("a", absl::Milliseconds(20)));
  EXPECT_EQ(late.WaitCode(), StatusCode::kDeadlineExceeded);
  // The only thread is free for the next one.
  Submit(model, "x", next);
  EXPECT_TRUE(next.Wait().ok()) << next.Wait().status();
  const int64_t before = prepared();
  Submit(model, "!endless", stopped);
  Await([&] { return prepared() == before + 1; }, "the last preparation");
  engine_->Shutdown();
  EXPECT_EQ(stopped.WaitCode(), StatusCode::kUnavailable);
  EXPECT_EQ(engine_->calls(), 0u);
}

TEST_F(EngineTest, CancelWhileQueued) {
  StartEngine();
  const ModelHandle model = MakeBlocked();
  Box first, queued;
  Submit(model, "first", first);
  AwaitBlocked();
  const CallId id = Submit(model, "queued", queued);
  AwaitQueued(1);
  engine_->Cancel(id);
  engine_->Cancel(id);
  EXPECT_EQ(queued.WaitCode(), StatusCode::kCancelled);
  control_->advance.Open();
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_EQ(control_->begun_items, 1);
  engine_->Cancel(id);
  EXPECT_EQ(queued.count(), 1);
}

TEST_F(EngineTest, CancelBetweenLayersSparesTheRest) {
  StartEngine();
  FakeOptions options;
  options.layers = 10;
  const ModelHandle model = MakeBlocked(options);
  Box warm, leaves, stays;
  Submit(model, "warm", warm);
  AwaitBlocked();
  const CallId id = Submit(model, "leaves", leaves);
  Submit(model, "stays", stays);
  AwaitQueued(2);
  control_->advance.Admit(10);  // The first batch.
  ASSERT_TRUE(warm.Wait().ok());
  control_->advance.Admit(3);
  Await([&] { return control_->layers_run == 13; }, "three layers");
  AwaitBlocked();
  engine_->Cancel(id);
  EXPECT_EQ(leaves.WaitCode(), StatusCode::kCancelled);  // At once, though the layer hangs.
  control_->advance.Open();
  ASSERT_TRUE(stays.Wait().ok());
  EXPECT_EQ(Logits(*stays.Wait()), FakeLogits("stays", 3));
  EXPECT_EQ(control_->dropped, 1);
  // Warm 10, together 3 layers and the one that hung, alone the other 6.
  EXPECT_EQ(control_->item_layers, 10 + 2 * 4 + 6);
  EXPECT_EQ(Metric("longview_cancelled_total{model=\"fake\",stage=\"running\",version=\"1\"}"), 1);
  EXPECT_EQ(Metric("longview_wasted_tokens_total{model=\"fake\",reason=\"cancelled\""), 6);
}

TEST_F(EngineTest, BatchStopsEarlyWhenNobodyIsLeft) {
  StartEngine();
  FakeOptions options;
  options.layers = 1000;
  const ModelHandle model = MakeBlocked(options);
  Box box;
  const CallId id = Submit(model, "x", box);
  AwaitBlocked();
  engine_->Cancel(id);
  control_->advance.Open();
  EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(20)));
  EXPECT_EQ(control_->layers_run, 1);
  EXPECT_EQ(control_->taken, 0);
}

TEST_F(EngineTest, DeadlineWhilePreparingQueuedAndRunning) {
  options_.prepare_threads = 1;
  StartEngine();
  FakeOptions options;
  options.layers = 2;
  const ModelHandle model = MakeBlocked(options);
  const auto blocked = [](testing::Gate& gate) {
    return gate.AwaitWaiting(1, absl::ZeroDuration());
  };
  // All are answered while what they are in hangs.
  Box running = SubmitUntil(model, "r", [&] { return blocked(control_->advance); });
  EXPECT_EQ(running.WaitCode(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(running.Wait().status().message().find("was running"), absl::string_view::npos);
  Box queued = SubmitUntil(model, "q", [&] { return engine_->waiting() == 1; });
  EXPECT_EQ(queued.WaitCode(), StatusCode::kDeadlineExceeded);
  control_->prepare.Close();
  Box preparing = SubmitUntil(model, "p", [&] { return blocked(control_->prepare); });
  EXPECT_EQ(preparing.WaitCode(), StatusCode::kDeadlineExceeded);
  control_->prepare.Open();
  control_->advance.Open();
  EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(20)));
  EXPECT_EQ(control_->begun_items, 1);
}

TEST_F(EngineTest, DeadlineThatCannotBeMetIsRefusedWithAHint) {
  StartEngine();
  FakeOptions options;
  options.item_seconds = 2000;
  const ModelHandle model = MakeBlocked(options);
  Box alone, first, behind;
  Submit(model, "x", alone, Info("a", absl::Seconds(1000)));
  EXPECT_EQ(alone.WaitCode(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(GetErrorDetail(alone.Wait().status()).reason, "DEADLINE_INFEASIBLE");
  EXPECT_FALSE(GetErrorDetail(alone.Wait().status()).retry_after.has_value());
  Submit(model, "x", first);
  AwaitBlocked();
  Submit(model, "x", behind, Info("a", absl::Seconds(3000)));
  EXPECT_EQ(behind.WaitCode(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(GetErrorDetail(behind.Wait().status()).retry_after.has_value());
  EXPECT_EQ(Metric("longview_rejected_total{model=\"fake\",reason=\"deadline\""), 2);
  control_->advance.Open();
}

TEST_F(EngineTest, FullQueueRefusesWithAHint) {
  options_.scheduler.max_queue_seconds = 3;
  StartEngine();
  FakeOptions options;
  options.item_seconds = 1;
  options.token_seconds = 0;
  const ModelHandle model = MakeBlocked(options);
  Box running;
  std::vector<Box> boxes(4);
  Submit(model, "x", running);
  AwaitBlocked();
  for (Box& box : boxes) Submit(model, "x", box);
  // Any of the four may be refused: that depends on the pool's threads.
  Await(
      [&] {
        int refused = 0;
        for (Box& box : boxes) refused += box.count();
        return refused == 1;
      },
      "one refusal");
  for (Box& box : boxes) {
    if (box.count() == 0) continue;
    EXPECT_EQ(box.WaitCode(), StatusCode::kResourceExhausted);
    const ErrorDetail detail = GetErrorDetail(box.Wait().status());
    EXPECT_EQ(detail.reason, "QUEUE_FULL");
    ASSERT_TRUE(detail.retry_after.has_value());
    EXPECT_GT(*detail.retry_after, absl::ZeroDuration());
    EXPECT_LT(*detail.retry_after, absl::Seconds(3));
  }
  EXPECT_NEAR(engine_->QueuedSeconds(), 4, 1.01);
  control_->advance.Open();
}

TEST_F(EngineTest, FullQueueRefusesBeforePreparing) {
  options_.prepare_threads = 1;
  options_.scheduler.max_queue_seconds = 3;
  StartEngine();
  FakeOptions options;
  options.item_seconds = 1;
  options.token_seconds = 0;
  const ModelHandle model = MakeBlocked(options);
  Box running, refused, other;
  std::vector<Box> boxes(3);
  Submit(model, "x", running);
  AwaitBlocked();
  for (Box& box : boxes) Submit(model, "x", box);
  AwaitQueued(3);
  EXPECT_EQ(Metric("longview_queued_work_seconds{"), 3);
  EXPECT_EQ(Submit(model, "x", refused), 0u);
  EXPECT_EQ(refused.WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorDetail(refused.Wait().status()).reason, "QUEUE_FULL");
  EXPECT_TRUE(GetErrorDetail(refused.Wait().status()).retry_after.has_value());
  EXPECT_EQ(Metric("longview_rejected_total{model=\"fake\",reason=\"queue\""), 1);
  EXPECT_EQ(control_->prepared, 4);
  // Somebody who has less waiting is prepared and takes the place of another.
  Submit(model, "x", other, Info("b"));
  Await([&] { return boxes.back().count() == 1; }, "displacement");
  EXPECT_EQ(boxes.back().WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_EQ(control_->prepared, 5);
  control_->advance.Open();
  EXPECT_TRUE(other.Wait().ok());
}

TEST_F(EngineTest, LargerThanTheDeviceNamesNeedAndLimit) {
  options_.scheduler.memory_bytes = 4096;
  StartEngine();
  Box box;
  Submit(MakeModel({}), "12345", box);
  EXPECT_EQ(box.WaitCode(), StatusCode::kInvalidArgument);
  EXPECT_NE(box.Wait().status().message().find("5120"), absl::string_view::npos);
  EXPECT_NE(box.Wait().status().message().find("4096"), absl::string_view::npos);
}

TEST_F(EngineTest, RequestsBeingPreparedAreBoundedInBytes) {
  options_.prepare.bytes = 100000;
  options_.prepare_threads = 1;
  StartEngine();
  FakeOptions options;
  options.control->prepare.Close();
  const ModelHandle model = MakeModel(options);
  Box first, second, third;
  Submit(model, std::string(4000, 'x'), first);
  ASSERT_TRUE(options.control->prepare.AwaitWaiting(1, absl::Seconds(20)));
  Submit(model, std::string(99000, 'x'), second);
  EXPECT_EQ(second.WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorDetail(second.Wait().status()).reason, "MEMORY_FULL");
  Submit(model, std::string(4000, 'x'), third);
  options.control->prepare.Open();
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(third.Wait().ok());
}

TEST_F(EngineTest, DrainingRefuses) {
  StartEngine();
  const ModelHandle model = MakeModel({});
  lifecycle_.set_phase(Lifecycle::Phase::kDraining);
  Box draining, stopping;
  Submit(model, "x", draining);
  EXPECT_TRUE(draining.Wait().ok());
  lifecycle_.set_phase(Lifecycle::Phase::kStopping);
  EXPECT_EQ(Submit(model, "x", stopping), 0u);
  EXPECT_EQ(stopping.WaitCode(), StatusCode::kUnavailable);
  EXPECT_TRUE(GetErrorDetail(stopping.Wait().status()).retry_after.has_value());
}

TEST_F(EngineTest, ShutdownAnswersEverybodyOnce) {
  options_.prepare_threads = 1;
  options_.scheduler.batch_seconds = 0;
  StartEngine();
  FakeOptions options;
  options.layers = 100;
  const ModelHandle model = MakeBlocked(options);
  Box running, queued, preparing, pooled;
  ReplyBox<Estimated> estimate;
  Submit(model, "running", running);
  AwaitBlocked();
  Submit(model, "queued", queued);
  AwaitQueued(1);
  control_->prepare.Close();
  Submit(model, "preparing", preparing);
  ASSERT_TRUE(control_->prepare.AwaitWaiting(1, absl::Seconds(20)));
  Submit(model, "pooled", pooled);
  engine_->Estimate(model, TextRequest("x"), 0, Info(), nullptr, estimate.reply());
  std::thread shutdown([&] { engine_->Shutdown(); });
  for (Box* box : {&running, &queued, &preparing, &pooled}) {
    EXPECT_EQ(box->WaitCode(), StatusCode::kUnavailable);
  }
  control_->prepare.Open();
  control_->advance.Open();
  shutdown.join();
  estimate.Wait();
  EXPECT_EQ(estimate.count(), 1);
  for (Box* box : {&running, &queued, &preparing, &pooled}) EXPECT_EQ(box->count(), 1);
  EXPECT_EQ(engine_->calls(), 0u);
  EXPECT_EQ(control_->layers_run, 1);
  EXPECT_EQ(control_->live_items, 0);
}

TEST_F(EngineTest, NoReplyRunsAfterShutdown) {
  StartEngine();
  const ModelHandle model = MakeBlocked();
  Box first;
  Submit(model, "first", first);
  AwaitBlocked();
  std::atomic<bool> begun = false, ended = false;
  const CallId id =
      engine_->Submit(model, TextRequest("queued"), Info(), [&](const absl::StatusOr<Completed>&) {
        begun = true;
        // A Shutdown that does not wait for it returns meanwhile.
        absl::SleepFor(absl::Milliseconds(20));
        ended = true;
      });
  AwaitQueued(1);
  engine_->Cancel(id);
  Await([&] { return begun.load(); }, "the reply");
  control_->advance.Open();
  engine_->Shutdown();
  EXPECT_TRUE(ended) << "the reply outlives what it may use";
}

TEST_F(EngineTest, EstimateRunsNothing) {
  options_.scheduler.memory_bytes = 100 * 1024;
  StartEngine();
  FakeOptions options;
  const ModelHandle model = MakeModel(options);
  ReplyBox<Estimated> text, tokens, large, wrong;
  engine_->Estimate(model, TextRequest("12345"), 0, Info(), nullptr, text.reply());
  ASSERT_TRUE(text.Wait().ok());
  EXPECT_DOUBLE_EQ(text.Wait()->cost.seconds, 1e-4 + 5e-6);
  EXPECT_EQ(text.Wait()->usage.input_tokens, 5);
  EXPECT_TRUE(text.Wait()->fits);
  engine_->Estimate(model, std::nullopt, 50, Info(), nullptr, tokens.reply());
  ASSERT_TRUE(tokens.Wait().ok());
  EXPECT_EQ(tokens.Wait()->usage.input_tokens, 50);
  engine_->Estimate(model, std::nullopt, 101, Info(), nullptr, large.reply());
  ASSERT_TRUE(large.Wait().ok());
  EXPECT_FALSE(large.Wait()->fits);
  EXPECT_NE(large.Wait()->reason.find("103424"), std::string::npos);
  engine_->Estimate(model, std::nullopt, 0, Info(), nullptr, wrong.reply());
  EXPECT_EQ(wrong.WaitCode(), StatusCode::kInvalidArgument);
  EXPECT_EQ(options.control->begun, 0);
}

TEST_F(EngineTest, ExclusiveWorkRunsBetweenBatches) {
  StartEngine();
  const ModelHandle model = MakeBlocked();
  Box box;
  Submit(model, "x", box);
  AwaitBlocked();
  std::atomic<bool> free = false, ran = false;
  std::thread other([&] {
    EXPECT_EQ(engine_->RunOnDevice("cpu", "fake",
                                   [&] {
                                     EXPECT_TRUE(free) << "the batch is under way";
                                     ran = true;
                                     return absl::NotFoundError("mine");
                                   }),
              absl::NotFoundError("mine"));
  });
  // A task that does not wait for the batch runs meanwhile.
  absl::SleepFor(absl::Milliseconds(20));
  free = true;
  control_->advance.Open();
  other.join();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(box.Wait().ok());
  engine_->Shutdown();
  EXPECT_EQ(engine_->RunOnDevice("cpu", "fake", [] { return absl::OkStatus(); }).code(),
            StatusCode::kUnavailable);
}

TEST_F(EngineTest, LongBatchOrWarmUpIsNotAStall) {
  options_.stall_patience = absl::Milliseconds(1);
  StartEngine();
  const ModelHandle model = MakeBlocked();
  Box running, queued;
  engine_->Submit(model, TokenRequest(), Info(), running.reply());
  AwaitBlocked();
  engine_->Submit(model, TokenRequest(), Info(), queued.reply());
  AwaitQueued(1);
  absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(engine_->Stuck(), "");
  control_->advance.Open();
  EXPECT_TRUE(queued.Wait().ok());
}

TEST_F(EngineTest, StuckPreparationIsAStall) {
  options_.stall_patience = absl::Milliseconds(1);
  options_.prepare_threads = 1;
  StartEngine();
  FakeOptions options;
  options.control->prepare.Close();
  const ModelHandle model = MakeModel(options);
  Box first, second;
  Submit(model, "x", first);
  ASSERT_TRUE(options.control->prepare.AwaitWaiting(1, absl::Seconds(20)));
  Submit(model, "x", second);
  Await([&] { return engine_->Stuck() == "requests wait to be prepared"; }, "the stall");
  options.control->prepare.Open();
  EXPECT_TRUE(second.Wait().ok());
  Await([&] { return engine_->Stuck().empty(); }, "its end");
}

TEST_F(EngineTest, CountsWhatItDid) {
  StartEngine();
  const ModelHandle model = MakeModel({});
  Box box;
  Submit(model, "12345678", box);
  ASSERT_TRUE(box.Wait().ok());
  EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(20)));
  const std::string labels = "{model=\"fake\",version=\"1\"}";
  EXPECT_EQ(Metric("longview_queue_duration_seconds_count" + labels), 1);
  EXPECT_EQ(Metric("longview_batch_items_count" + labels), 1);
  EXPECT_EQ(Metric("longview_batch_tokens_sum" + labels), 8);
  EXPECT_EQ(Metric("longview_predicted_vs_actual_ratio_count" + labels), 1);
  EXPECT_EQ(Metric("longview_tokens_total{kind=\"prompt\""), 8);
  EXPECT_EQ(Metric("longview_queued_requests" + labels), 0);
  EXPECT_EQ(Metric("longview_running_requests" + labels), 0);
}

}  // namespace
}  // namespace longview::server
