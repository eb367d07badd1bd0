// Work between the slices of a task that has the device, such as a model's warm-up; estimates
// that are asked for by somebody.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "models/cost/stopwatch.h"
#include "models/pauses.h"
#include "tests/server/engine/generation_fixture.h"

namespace longview::server {
namespace {

using absl::StatusCode;
using testing::FakeLogits;
using testing::FakeOptions;
using testing::GeneratorOptions;

constexpr absl::Duration kSlice = absl::Milliseconds(6);  // Longer than the shortest one.

class SlicesTest : public GenerationFixture {
 protected:
  // Computes in slices until `enough`; false if that never holds.
  template <typename Enough>
  static bool ComputeUntil(Enough enough) {
    const absl::Time end = SteadyNow() + absl::Seconds(20);
    while (!enough()) {
      if (SteadyNow() > end) return false;
      absl::SleepFor(kSlice);
      models::PauseBetweenLoops();
    }
    return true;
  }
};

TEST_F(SlicesTest, AStreamGoesOnWhileAModelWarmsUp) {
  StartEngine();
  GeneratorOptions options;
  options.max_tokens = 10000000;
  options.token_bytes = 1;
  options.pace = 1;
  const ModelHandle generator = MakeGenerator(options);
  EventBox stream;
  Generate(generator, Prompt("stream", 5000000), stream);
  ASSERT_TRUE(stream.AwaitPieces(1));
  const absl::Status warm = engine_->RunOnDevice("cpu", "new", [&] {
    const int64_t before = control_->steps;
    const bool stepped = ComputeUntil([&] { return control_->steps >= before + 5; });
    return stepped ? absl::OkStatus() : absl::InternalError("no step went between");
  });
  EXPECT_TRUE(warm.ok()) << warm;
  engine_->Shutdown();
  EXPECT_EQ(stream.WaitCode(), StatusCode::kUnavailable);
}

TEST_F(SlicesTest, ShortRequestsAreAnsweredAndPromptsBegunWhileAModelWarmsUp) {
  StartEngine();
  const ModelHandle generator = MakeGenerator({});
  FakeOptions brief;
  brief.item_seconds = 0.01;
  const ModelHandle shorts = MakeModel(brief, "shorts");
  Box box;
  EventBox prompt;
  const absl::Status warm = engine_->RunOnDevice("cpu", "new", [&] {
    Submit(shorts, "short", box, Info("b"));
    Generate(generator, Prompt("prompt", 20), prompt);
    const bool answered = ComputeUntil(
        [&] { return box.count() > 0 && control_->live_generations == 0 && prompt.pieces() > 0; });
    return answered ? absl::OkStatus() : absl::InternalError("they waited for its end");
  });
  EXPECT_TRUE(warm.ok()) << warm;
  ASSERT_TRUE(box.Wait().ok());
  EXPECT_EQ(Logits(*box.Wait()), FakeLogits("short", 3));
  EXPECT_TRUE(prompt.Wait().ok());
  ExpectNothingLeft();
}

TEST_F(SlicesTest, DocumentWaitsForTheEndOfATask) {
  StartEngine();
  FakeOptions document;
  document.item_seconds = 60;
  const ModelHandle documents = MakeModel(document, "documents");
  Box box;
  const absl::Status warm = engine_->RunOnDevice("cpu", "new", [&] {
    Submit(documents, "document", box);
    AwaitQueued(1);
    for (int slice = 0; slice < 10; ++slice) {
      absl::SleepFor(kSlice);
      models::PauseBetweenLoops();
    }
    return document.control->begun == 0 ? absl::OkStatus() : absl::InternalError("it did not");
  });
  EXPECT_TRUE(warm.ok()) << warm;
  EXPECT_TRUE(box.Wait().ok());
}

TEST_F(SlicesTest, WhatATaskTimesIsItsOwn) {
  StartEngine();
  FakeOptions brief;
  brief.item_seconds = 0.05;
  brief.layer_item_time = absl::Milliseconds(50);
  const ModelHandle shorts = MakeModel(brief, "shorts");
  Box box;
  double own = 0, watched = 0, all = 0;
  EXPECT_TRUE(engine_
                  ->RunOnDevice("cpu", "new",
                                [&] {
                                  Submit(shorts, "short", box);
                                  const absl::Time start = SteadyNow();
                                  const double before = models::ComputeClock();
                                  {
                                    const models::Stopwatch watch(&watched);
                                    ComputeUntil([&] { return box.count() > 0; });
                                  }
                                  own = models::ComputeClock() - before;
                                  all = absl::ToDoubleSeconds(SteadyNow() - start);
                                  return absl::OkStatus();
                                })
                  .ok());
  ASSERT_TRUE(box.Wait().ok());
  // All that the request computed went between.
  EXPECT_LE(own, all - 0.05);
  EXPECT_LE(watched, own);
  EXPECT_GE(watched, 0.005);
}

TEST_F(SlicesTest, PromptsThatWaitFillTheQueue) {
  options_.scheduler.max_queue_seconds = 3;
  StartEngine();
  GeneratorOptions options;
  options.prefill_seconds = 1e-3;
  const ModelHandle model = MakeGenerator(options);
  control_->advance.Close();
  const std::string prompt(2000, 'p');  // Two seconds.
  std::vector<EventBox> boxes(4);
  Generate(model, Prompt(prompt, 1), boxes[0]);
  // One is read,
  ASSERT_TRUE(control_->advance.AwaitWaiting(1, absl::Seconds(20)));
  Generate(model, Prompt(prompt, 1), boxes[1]);
  AwaitQueued(1);
  EXPECT_NEAR(Metric("longview_queued_work_seconds{model=\"gen\""), 2, 0.1);
  ReplyBox<Estimated> estimate;
  engine_->Estimate(model, Prompt(prompt, 1), 0, Info(), nullptr, estimate.reply());
  ASSERT_TRUE(estimate.Wait().ok());
  EXPECT_GE(estimate.Wait()->queue_seconds, 2);
  EXPECT_FALSE(estimate.Wait()->fits) << "4 s beside a bound of 3";
  Generate(model, Prompt(prompt, 1), boxes[2]);
  EXPECT_EQ(boxes[2].WaitCode(), StatusCode::kResourceExhausted);
  // A call that mostly decodes is let in, as its prompt fits.
  Generate(model, Prompt("short", 2000), boxes[3]);
  control_->advance.Open();
  for (const int admitted : {0, 1, 3}) {
    EXPECT_TRUE(boxes[static_cast<size_t>(admitted)].Wait().ok()) << admitted;
  }
  ExpectNothingLeft();
}

TEST_F(SlicesTest, AnEstimateNobodyWaitsForIsNotPrepared) {
  options_.prepare_threads = 1;
  StartEngine();
  FakeOptions options;
  options.control->prepare.Close();
  const ModelHandle model = MakeModel(options);
  Box first;
  Submit(model, "first", first);
  ASSERT_TRUE(options.control->prepare.AwaitWaiting(1, absl::Seconds(20)));
  const int64_t prepared = options.control->prepared;
  const auto unwanted = std::make_shared<std::atomic<bool>>(false);
  ReplyBox<Estimated> late, cancelled, wanted;
  const CallInfo due = Info("a", absl::Milliseconds(1));
  engine_->Estimate(model, TextRequest("late"), 0, due, nullptr, late.reply());
  engine_->Estimate(model, TextRequest("cancelled"), 0, Info(), unwanted, cancelled.reply());
  engine_->Estimate(model, TextRequest("wanted"), 0, Info(), nullptr, wanted.reply());
  *unwanted = true;
  Await([&] { return SteadyNow() > due.deadline; }, "the deadline");
  options.control->prepare.Open();
  EXPECT_EQ(late.WaitCode(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(cancelled.WaitCode(), StatusCode::kCancelled);
  EXPECT_TRUE(wanted.Wait().ok());
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_EQ(options.control->prepared - prepared, 2) << "more than what is wanted";
}

}  // namespace
}  // namespace longview::server
