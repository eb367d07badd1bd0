// The typed text calls over fake models.
#include <gtest/gtest.h>

#include "tests/server/api/infer_helpers.h"

namespace longview::testing {
namespace {

using models::Task;
namespace v1 = longview::v1;

template <typename Request, typename Response>
using Call = server::Api::Pending (server::Api::*)(const server::CallInfo&, const Request&,
                                                   server::Reply<Response>);

template <typename Request, typename Response>
absl::StatusOr<Response> Do(Backend& backend, Call<Request, Response> call,
                            const std::string& text) {
  Request request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  Waiter<Response> waiter;
  (backend.api.*call)(TestCall(), request, waiter.reply());
  return waiter.Get();
}

void AddTask(Backend& backend, const std::string& name, Task task) {
  FakeOptions options;
  options.tasks = {task, Task::kEmbedding};
  backend.store.Add(name, options);
}

TEST(Typed, Classify) {
  Backend backend;
  const auto response = Do<v1::ClassifyRequest, v1::ClassifyResponse>(
      backend, &server::Api::Classify, R"(model: "one" text: "abc" top_k: 2 return_logits: true)");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->model(), "one");
  EXPECT_EQ(response->version(), "1");
  ASSERT_EQ(response->labels_size(), 2);
  EXPECT_GE(response->labels(0).score(), response->labels(1).score());
  EXPECT_EQ(Floats(response->logits()), FakeLogits("abc", 3));
  EXPECT_EQ(response->usage().input_tokens(), 3);
}

TEST(Typed, TimingTellsWhatAnItemWaitedAndTook) {
  Backend backend;
  constexpr double kWait = 0.04, kCompute = 0.015;
  FakeOptions sleeps;
  sleeps.layer_item_time = absl::Seconds(kCompute);
  backend.store.Add("sleeps", sleeps);
  backend.control->advance.Close();
  v1::ClassifyRequest request;
  request.set_model("one");
  request.set_text("abc");
  Waiter<v1::ClassifyResponse> other, waiter;
  backend.api.Classify(TestCall(), request, other.reply());
  ASSERT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  const absl::Time start = server::SteadyNow();
  request.set_model("sleeps");
  backend.api.Classify(TestCall(), request, waiter.reply());
  ASSERT_TRUE(Eventually([&] { return backend.engine.waiting() == 1; }));
  absl::SleepFor(absl::Seconds(kWait));
  backend.control->advance.Open();
  const auto response = waiter.Get();
  const double whole = absl::ToDoubleSeconds(server::SteadyNow() - start);
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::Timing& timing = response->timing();
  EXPECT_GE(timing.queue_seconds(), kWait);
  EXPECT_GE(timing.compute_seconds(), kCompute);
  EXPECT_GE(timing.total_seconds() + 2e-6, timing.queue_seconds() + timing.compute_seconds());
  EXPECT_LE(timing.total_seconds(), whole + 1e-6);
  EXPECT_EQ(timing.batch_items(), 1);
  EXPECT_TRUE(other.Get().ok());
}

// The tokenizer finds a shared text's tokens once.
TEST(Typed, AllPairsOfARerankListShareTheQuery) {
  Backend backend;
  FakeOptions options;
  options.tasks = {Task::kRerank};
  backend.store.Add("rank", options);
  options.control->advance.Close();
  v1::RerankRequest request;
  request.set_model("rank");
  request.set_query("q");
  for (int i = 0; i < 6; ++i) request.add_documents("document");
  Waiter<v1::RerankResponse> waiter;
  backend.api.Rerank(TestCall(), request, waiter.reply());
  EXPECT_TRUE(Eventually([&] { return options.control->live_items == 6; }));
  EXPECT_EQ(backend.prepared(), 6);
  // The items, the last request and this copy.
  EXPECT_GE(backend.last_request().shared_text.use_count(), 8);
  options.control->advance.Open();
  EXPECT_TRUE(waiter.Get().ok());
}

TEST(Typed, ClassifyTokenIdsWithOptions) {
  Backend backend;
  const auto response = Do<v1::ClassifyRequest, v1::ClassifyResponse>(
      backend, &server::Api::Classify,
      R"(token_ids: [97, 98] truncate: true global_positions: [0, 1])");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->model(), "one") << "the only classifier";
  EXPECT_EQ(response->labels_size(), 3);
  EXPECT_EQ(response->logits_size(), 0);
  const models::Request last = backend.last_request();
  EXPECT_EQ(last.truncate, true);
  EXPECT_EQ(last.global_positions, (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(last.tensors.empty());
}

TEST(Typed, ClassifyTokens) {
  Backend backend;
  AddTask(backend, "ner", Task::kTokenClassification);
  const auto response = Do<v1::ClassifyTokensRequest, v1::ClassifyTokensResponse>(
      backend, &server::Api::ClassifyTokens,
      R"(model: "ner" text: "An Old tree" aggregation: "first" return_logits: true)");
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->entities_size(), 2);
  EXPECT_EQ(response->entities(1).text(), "Old");
  EXPECT_EQ(response->entities(1).start(), 3);
  ASSERT_EQ(response->logits_size(), 11);
  EXPECT_EQ(Floats(response->logits(1).values()), (std::vector<float>{110, 110.25, 110.5}));
  EXPECT_EQ(backend.last_request().aggregation, "first");
}

TEST(Typed, AnswerQuestion) {
  Backend backend;
  AddTask(backend, "qa", Task::kQuestionAnswering);
  const auto response = Do<v1::AnswerQuestionRequest, v1::AnswerQuestionResponse>(
      backend, &server::Api::AnswerQuestion,
      R"(model: "qa" text: "Ada wrote it" question: "who?" top_k: 2 max_answer_tokens: 4
         return_logits: true)");
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->answers_size(), 2);
  EXPECT_EQ(response->answers(0).text(), "Ada");
  EXPECT_EQ(response->answers(1).start(), 4);
  EXPECT_EQ(response->start_logits_size(), 16);
  EXPECT_EQ(response->end_logits_size(), 16);
  EXPECT_EQ(backend.last_request().max_answer_tokens, 4);
}

TEST(Typed, FillMask) {
  Backend backend;
  AddTask(backend, "mlm", Task::kFillMask);
  const auto response = Do<v1::FillMaskRequest, v1::FillMaskResponse>(
      backend, &server::Api::FillMask, R"(model: "mlm" text: "a_" top_k: 1 return_logits: true)");
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->masks_size(), 1);
  EXPECT_EQ(response->masks(0).position(), 1);
  EXPECT_EQ(response->masks(0).candidates_size(), 1);
  ASSERT_EQ(response->masks(0).logits_size(), 256);
  EXPECT_EQ(response->masks(0).logits(0), static_cast<float>('_'));
  // Never [T, V]: at 4,096 tokens that is 800 MB.
  EXPECT_EQ(backend.last_request().tensors, std::vector<std::string>{"mask_logits"});
}

TEST(Typed, EmbedInChunks) {
  Backend backend;
  AddTask(backend, "e", Task::kEmbedding);
  const auto response = Do<v1::EmbedRequest, v1::EmbedResponse>(
      backend, &server::Api::Embed, R"(model: "e" text: "aabbc" chunk_tokens: 2)");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->model(), "e");
  EXPECT_EQ(response->chunking(), "separate");
  ASSERT_EQ(response->chunks_size(), 3);
  EXPECT_EQ(response->chunks(2).start(), 4);
  EXPECT_EQ(response->chunks(2).end(), 5);
  const int width = response->embedding_size() / 3;
  std::vector<float> want;
  for (const char* chunk : {"aa", "bb", "c"}) {
    const std::vector<float> own = FakeLogits(chunk, width);
    want.insert(want.end(), own.begin(), own.end());
  }
  EXPECT_EQ(Floats(response->embedding()), want);
  EXPECT_EQ(response->usage().input_tokens(), 5);
  EXPECT_EQ(response->timing().batch_items(), 3) << "they are admitted together";
  // One item's failure is the call's.
  EXPECT_EQ((Do<v1::EmbedRequest, v1::EmbedResponse>(
                 backend, &server::Api::Embed,
                 R"(model: "e" text: "0123456789!preparexx" chunk_tokens: 10)")
                 .status()
                 .code()),
            absl::StatusCode::kInvalidArgument);
}

TEST(Typed, Embed) {
  Backend backend;
  AddTask(backend, "e", Task::kEmbedding);
  const auto response = Do<v1::EmbedRequest, v1::EmbedResponse>(
      backend, &server::Api::Embed, R"(model: "e" text: "abc" pooling: "mean" normalize: false)");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(Floats(response->embedding()), FakeLogits("abc", 4));
  EXPECT_EQ(backend.last_request().normalize, false);
  EXPECT_EQ(backend.last_request().pooling, "mean");
}

TEST(Typed, Estimate) {
  Backend backend;
  AddTask(backend, "qa", Task::kQuestionAnswering);
  const auto by_count = Do<v1::EstimateRequest, v1::EstimateResponse>(
      backend, &server::Api::Estimate, R"(model: "one" num_tokens: 1000)");
  ASSERT_TRUE(by_count.ok()) << by_count.status();
  EXPECT_DOUBLE_EQ(by_count->workspace_bytes(), 1024.0 * 1000);
  EXPECT_TRUE(by_count->fits());
  const auto by_text = Do<v1::EstimateRequest, v1::EstimateResponse>(
      backend, &server::Api::Estimate, R"(model: "qa" text: "no question needed")");
  ASSERT_TRUE(by_text.ok()) << by_text.status();
  EXPECT_EQ(by_text->usage().input_tokens(), 18);
}

TEST(Typed, EstimateByAPicturesSize) {
  Backend backend;
  FakeOptions sees;
  sees.tasks = {Task::kObjectDetection};
  sees.max_tokens = 5000;
  backend.store.Add("sees", sees);
  const auto estimate = Do<v1::EstimateRequest, v1::EstimateResponse>(
      backend, &server::Api::Estimate, R"(model: "sees" width: 60 height: 50)");
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  EXPECT_DOUBLE_EQ(estimate->workspace_bytes(), 1024.0 * 3000);
  EXPECT_EQ(estimate->usage().width(), 60);
  EXPECT_EQ(estimate->usage().height(), 50);
  EXPECT_EQ(estimate->usage().input_tokens(), 0);
  EXPECT_TRUE(estimate->fits());
}

}  // namespace
}  // namespace longview::testing
