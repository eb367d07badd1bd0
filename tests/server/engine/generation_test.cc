// The promises to a generating call, with a fake generator.
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/errors.h"
#include "tests/server/engine/generation_fixture.h"

namespace longview::server {
namespace {

using absl::StatusCode;
using testing::FakeContinuation;
using testing::FakeLogits;
using testing::FakeOptions;
using testing::GeneratorOptions;

class GenerationTest : public GenerationFixture {
 protected:
  // Waits until the device stands before a layer of a step.
  void AwaitStep() { ASSERT_TRUE(control_->advance.AwaitWaiting(1, absl::Seconds(20))); }
};

TEST_F(GenerationTest, PiecesThenTheWholeAnswer) {
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  EventBox box;
  Generate(model, Prompt("a prompt of some length", 10, 2), box);
  ASSERT_TRUE(box.Wait().ok()) << box.Wait().status();
  const Completed& completed = *box.Wait();
  ASSERT_EQ(completed.answer.sequences.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const std::string expected = FakeContinuation("a prompt of some length", i, 10);
    EXPECT_EQ(box.text(static_cast<size_t>(i)), expected);
    EXPECT_EQ(completed.answer.sequences[static_cast<size_t>(i)].text, expected);
  }
  EXPECT_TRUE(box.in_order());
  EXPECT_GT(box.pieces(), 5);
  EXPECT_EQ(completed.answer.usage.input_tokens, 23);
  EXPECT_EQ(completed.answer.usage.output_tokens, 20);
  EXPECT_GE(completed.total_seconds, completed.compute_seconds + completed.queue_seconds);
  ExpectNothingLeft();
}

TEST_F(GenerationTest, BatchMatesChangeNothing) {
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  std::vector<EventBox> boxes(33);
  std::mt19937 random(5);
  std::vector<std::string> prompts;
  std::vector<int> lengths;
  for (size_t i = 0; i < boxes.size(); ++i) {
    prompts.push_back(std::string(1 + random() % 300, static_cast<char>('a' + i % 26)));
    lengths.push_back(1 + static_cast<int>(random() % 60));
    Generate(model, Prompt(prompts[i], lengths[i]), boxes[i], Info(std::to_string(i % 5)));
    if (i % 7 == 0) absl::SleepFor(absl::Milliseconds(1));
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    ASSERT_TRUE(boxes[i].Wait().ok());
    EXPECT_EQ(boxes[i].text(), FakeContinuation(prompts[i], 0, lengths[i]));
    EXPECT_TRUE(boxes[i].in_order());
  }
  ExpectNothingLeft();
}

TEST_F(GenerationTest, StopStringsEchoAndScoring) {
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  const std::string text = FakeContinuation("p", 0, 20);
  models::Request stops = Prompt("p", 20);
  stops.generation->stop = {text.substr(5, 3)};
  EventBox stopped, scored;
  Generate(model, stops, stopped);
  ASSERT_TRUE(stopped.Wait().ok());
  EXPECT_EQ(stopped.text(), text.substr(0, 5));
  EXPECT_EQ(stopped.Wait()->answer.sequences[0].finish_reason, "stop");

  models::Request score = Prompt("score me", 0);
  score.generation->echo = true;
  score.generation->logprobs = 1;
  Generate(model, score, scored);
  ASSERT_TRUE(scored.Wait().ok());
  EXPECT_EQ(scored.Wait()->answer.prompt->text, "score me");
  EXPECT_EQ(scored.Wait()->answer.usage.output_tokens, 0);
  ExpectNothingLeft();
}

TEST_F(GenerationTest, WhoeverCountsTheAnswerMayRefuseItBeforeItIsAdmitted) {
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  EventBox refused, counted;
  GenerationEvents events = refused.events();
  events.on_prepared = [](const models::Cost&) { return absl::ResourceExhaustedError("too much"); };
  engine_->Generate(model, Prompt("p", 3), Info(), std::move(events), refused.reply());
  EXPECT_EQ(refused.WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(refused.in_order());
  EXPECT_EQ(refused.pieces(), 0);
  models::Cost cost;
  events = counted.events();
  events.on_prepared = [&cost](const models::Cost& predicted) {
    cost = predicted;
    return absl::OkStatus();
  };
  engine_->Generate(model, Prompt("p", 3), Info(), std::move(events), counted.reply());
  ASSERT_TRUE(counted.Wait().ok());
  EXPECT_GT(cost.seconds, 0);
  ExpectNothingLeft();
}

TEST_F(GenerationTest, WhoeverCountsTheAnswerIsToldAsItGrows) {
  StartEngine();
  GeneratorOptions options;
  options.answer_token_bytes = 50'000;
  const ModelHandle model = MakeGenerator(std::move(options));
  EventBox box;
  GenerationEvents events = box.events();
  events.on_pieces = nullptr;
  std::vector<size_t> told;
  events.on_grown = [&told](size_t bytes) { told.push_back(bytes); };
  engine_->Generate(model, Prompt("p", 20), Info(), std::move(events), box.reply());
  ASSERT_TRUE(box.Wait().ok());
  ASSERT_FALSE(told.empty());
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_GE(told[i], (i == 0 ? 0 : told[i - 1]) + (64 << 10));
  }
  EXPECT_LE(told.back(), size_t{20} * 50'000);
  EXPECT_GE(told.back(), size_t{18} * 50'000);
  ExpectNothingLeft();
}

TEST_F(GenerationTest, FailuresReachTheirOwnCall) {
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  EventBox prepare, start, step, take, good;
  Generate(model, Prompt("!prepare"), prepare);
  Generate(model, Prompt("!start"), start);
  Generate(model, Prompt("!take"), take);
  EXPECT_EQ(prepare.WaitCode(), StatusCode::kInvalidArgument);
  EXPECT_EQ(start.WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_EQ(take.WaitCode(), StatusCode::kInternal);
  Generate(model, Prompt("!step"), step);  // Takes those in its step along.
  EXPECT_EQ(step.WaitCode(), StatusCode::kInternal);
  Generate(model, Prompt("good", 3), good);
  ASSERT_TRUE(good.Wait().ok());
  EXPECT_EQ(good.text(), FakeContinuation("good", 0, 3));
  ExpectNothingLeft();
}

TEST_F(GenerationTest, ModelThatDoesNotGenerate) {
  StartEngine();
  const ModelHandle generator = MakeGenerator({});
  EventBox box;
  Generate(MakeModel({}), Prompt("x"), box);
  EXPECT_EQ(box.WaitCode(), StatusCode::kUnimplemented);
  ReplyBox<std::shared_ptr<models::Document>> document;
  engine_->NewDocument(MakeModel({}), document.reply());
  EXPECT_EQ(document.WaitCode(), StatusCode::kUnimplemented);
}

TEST_F(GenerationTest, CancelTakesEffectWithinOneStep) {
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  EventBox leaves, stays;
  control_->advance.Close();
  const CallId id = Generate(model, Prompt("leaves", 10000), leaves);
  Generate(model, Prompt("stays", 2000), stays);
  // The gate lets single steps through, so that neither ends before the other is cancelled.
  for (int i = 0; i < 1000 && (leaves.pieces() < 3 || stays.pieces() < 1); ++i) {
    AwaitStep();
    control_->advance.Admit(1);
  }
  ASSERT_GE(leaves.pieces(), 3);
  AwaitStep();
  const int64_t before = control_->steps;
  engine_->Cancel(id);
  EXPECT_EQ(leaves.WaitCode(), StatusCode::kCancelled);
  // The step that runs is the last it may be part of.
  control_->advance.Admit(2);
  Await([&] { return control_->live_generations == 1; }, "the generation's end");
  EXPECT_LE(control_->steps, before + 1);
  control_->advance.Open();
  ASSERT_TRUE(stays.Wait().ok());
  EXPECT_EQ(stays.text(), FakeContinuation("stays", 0, 2000));
  EXPECT_GT(Metric("longview_wasted_tokens_total{model=\"gen\",reason=\"cancelled\""), 5);
  EXPECT_EQ(Metric("longview_cancelled_total{model=\"gen\",stage=\"running\""), 1);
  ExpectNothingLeft();
}

TEST_F(GenerationTest, ThousandCancelledInMidStreamLeaveNothing) {
  StartEngine();
  GeneratorOptions options;
  options.step_seconds = 2e-5;
  options.pace = 1;
  const ModelHandle model = MakeGenerator(options);
  constexpr int kCalls = 1000;
  constexpr size_t kOpen = 24;
  std::mt19937 random(11);
  std::vector<std::pair<CallId, EventBox>> open;
  int in_mid_stream = 0;
  for (int i = 0; i < kCalls; ++i) {
    EventBox box;
    const CallId id = Generate(model, Prompt(std::string(1 + random() % 100, 'x'), 90000), box,
                               Info(std::to_string(i % 3)));
    open.emplace_back(id, box);
    while (open.size() > kOpen || (i + 1 == kCalls && !open.empty())) {
      const auto which = static_cast<std::ptrdiff_t>(random() % open.size());
      auto& [victim, heard] = open[static_cast<size_t>(which)];
      if (random() % 4 != 0) {
        EXPECT_TRUE(heard.AwaitPieces(1));
      }
      engine_->Cancel(victim);
      EXPECT_EQ(heard.WaitCode(), StatusCode::kCancelled);
      EXPECT_TRUE(heard.in_order());
      in_mid_stream += heard.pieces() > 0;
      open.erase(open.begin() + which);
    }
  }
  EXPECT_GT(in_mid_stream, kCalls / 2);
  ExpectNothingLeft();
  EXPECT_EQ(control_->state_bytes, 0);
  EXPECT_EQ(control_->live_documents, 0);
}

TEST_F(GenerationTest, SlowReadersDoNotHoldUpTheDevice) {
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  EventBox slow;
  slow.reader().Close();
  Generate(model, Prompt("slow", 100), slow);
  // All tokens are sampled before the reader has seen the first.
  Await([&] { return control_->decoded == 100; }, "the device");
  EXPECT_EQ(slow.pieces(), 0);
  slow.reader().Open();
  ASSERT_TRUE(slow.Wait().ok());
  EXPECT_EQ(slow.text(), FakeContinuation("slow", 0, 100));
  EXPECT_TRUE(slow.in_order());
}

TEST_F(GenerationTest, DeadlineDuringDecode) {
  StartEngine();
  GeneratorOptions options;
  options.pace = 1;
  options.step_seconds = 1e-3;
  options.decode_seconds = 1e-8;  // Predicted in time, but the steps take much longer.
  const ModelHandle model = MakeGenerator(options);
  int pieces = 0;
  // On a busy machine a deadline may pass before there are some.
  for (absl::Duration due = absl::Milliseconds(20); pieces <= 3 && due < absl::Seconds(20);
       due *= 2) {
    EventBox box;
    Generate(model, Prompt("late", 90000), box, Info("a", due));
    EXPECT_EQ(box.WaitCode(), StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(box.in_order());
    pieces = box.pieces();
  }
  EXPECT_GT(pieces, 3);
  ExpectNothingLeft();
  EXPECT_EQ(control_->state_bytes, 0);
}

TEST_F(GenerationTest, MemoryIsReservedFromStartToEnd) {
  options_.scheduler.memory_bytes = 100 * 1024;
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  EventBox large;
  Generate(model, Prompt("x", 200), large);  // 201 KiB.
  EXPECT_EQ(large.WaitCode(), StatusCode::kInvalidArgument);
  const std::string message(large.Wait().status().message());
  EXPECT_NE(message.find("205824"), std::string::npos) << message;
  EXPECT_NE(message.find("102400"), std::string::npos) << message;

  // Forty of 40 tokens each: two fit at a time.
  std::vector<EventBox> boxes(40);
  for (EventBox& box : boxes) Generate(model, Prompt("0123456789", 30), box);
  for (EventBox& box : boxes) {
    ASSERT_TRUE(box.Wait().ok());
    EXPECT_EQ(box.text(), FakeContinuation("0123456789", 0, 30));
  }
  EXPECT_LE(control_->max_state_bytes, 100 * 1024);
  EXPECT_GT(control_->max_state_bytes, 40 * 1024);
  ExpectNothingLeft();
}

TEST_F(GenerationTest, StepsGoBetweenTheLayersOfABatch) {
  StartEngine();
  GeneratorOptions options;
  options.decode_seconds = 1e-3;
  options.pace = 1;
  const ModelHandle generator = MakeGenerator(options);
  FakeOptions batch;
  batch.layers = 50;
  batch.item_seconds = 0.25;
  batch.layer_item_time = absl::Milliseconds(5);
  testing::Gate& layers = batch.control->advance;
  layers.Close();
  const ModelHandle classifier = MakeModel(batch);
  EventBox stream;
  Generate(generator, Prompt("stream", 5000), stream);
  ASSERT_TRUE(stream.AwaitPieces(1));
  Box classified;
  Submit(classifier, "much work", classified);
  ASSERT_TRUE(layers.AwaitWaiting(1, absl::Seconds(20)));
  const int64_t before = control_->steps;
  layers.Admit(batch.layers - 1);
  // Before its last layer.
  ASSERT_TRUE(layers.AwaitWaiting(1, absl::Seconds(20)));
  const int64_t during = control_->steps - before;
  layers.Open();
  ASSERT_TRUE(classified.Wait().ok());
  EXPECT_EQ(Logits(*classified.Wait()), FakeLogits("much work", 3));
  EXPECT_GE(during, 5) << "tokens while the batch was on the device";
  // The batch took its own time, not that of the steps between its layers, a millisecond each.
  const Completed& batched = *classified.Wait();
  EXPECT_GE(batched.compute_seconds, 0.25);
  EXPECT_LE(batched.queue_seconds + batched.compute_seconds + 1e-3 * static_cast<double>(during),
            batched.total_seconds);
  EXPECT_GT(Metric("longview_inter_token_latency_seconds_bucket{model=\"gen\",version=\"1\","
                   "le=\"0.1\"}"),
            0);
  engine_->Shutdown();
  EXPECT_EQ(stream.WaitCode(), StatusCode::kUnavailable);
}

TEST_F(GenerationTest, MetricsTellTheSameStory) {
  StartEngine();
  GeneratorOptions options;
  options.cached_tokens = 32;
  const ModelHandle model = MakeGenerator(options);
  EventBox box;
  Generate(model, Prompt(std::string(100, 'p'), 10, 2), box);
  ASSERT_TRUE(box.Wait().ok());
  ExpectNothingLeft();
  EXPECT_EQ(box.Wait()->answer.usage.cached_tokens, 32);
  const std::string labels = "{model=\"gen\",version=\"1\"}";
  const auto tokens = [this](const std::string& kind) {
    return Metric("longview_tokens_total{kind=\"" + kind + "\",model=\"gen\",version=\"1\"}");
  };
  EXPECT_EQ(tokens("prompt"), 100);
  EXPECT_EQ(tokens("cached"), 32);
  EXPECT_EQ(tokens("generated"), 20);
  EXPECT_EQ(Metric("longview_time_to_first_token_seconds_count" + labels), 1);
  EXPECT_EQ(Metric("longview_inter_token_latency_seconds_count" + labels), 18);
  EXPECT_GT(Metric("longview_compute_duration_seconds_count{model=\"gen\",phase=\"decode\""), 0);
  EXPECT_GT(Metric("longview_compute_duration_seconds_count{model=\"gen\",phase=\"prefill\""), 0);
}

TEST_F(GenerationTest, ShutdownEndsStreamsAndDrainLetsThemFinish) {
  StartEngine();
  GeneratorOptions options;
  options.pace = 1;
  options.step_seconds = 1e-4;
  const ModelHandle model = MakeGenerator(options);
  EventBox finishes, ends, refused;
  Generate(model, Prompt("finishes", 200), finishes);
  ASSERT_TRUE(finishes.AwaitPieces(1));
  lifecycle_.set_phase(Lifecycle::Phase::kStopping);
  Generate(model, Prompt("refused"), refused);
  EXPECT_EQ(refused.WaitCode(), StatusCode::kUnavailable);
  EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(20)));
  EXPECT_TRUE(finishes.Wait().ok());

  lifecycle_.set_phase(Lifecycle::Phase::kServing);
  Generate(model, Prompt("ends", 50000), ends);
  ASSERT_TRUE(ends.AwaitPieces(1));
  engine_->Shutdown();
  EXPECT_EQ(ends.WaitCode(), StatusCode::kUnavailable);
  EXPECT_TRUE(ends.in_order());
  ExpectNoCallLeft();
}

}  // namespace
}  // namespace longview::server
