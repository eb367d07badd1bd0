// Answers of inference requests: values, shapes, order, forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/time/clock.h"

#include "tests/server/api/infer_helpers.h"

namespace longview::testing {
namespace {

constexpr char kTwoTexts[] = R"(model_name: "one" id: "abc"
    inputs { name: "text" datatype: "BYTES" shape: [2]
             contents { bytes_contents: ["first", "second one"] } })";

TEST(Infer, DefaultOutputsOfTwoTexts) {
  Backend backend;
  const auto response = Infer(backend, kTwoTexts);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->model_name(), "one");
  EXPECT_EQ(response->model_version(), "1");
  EXPECT_EQ(response->id(), "abc");
  ASSERT_EQ(OutputNames(*response), (std::vector<std::string>{"logits", "probabilities", "label"}));
  EXPECT_EQ(response->raw_output_contents_size(), 0);

  const auto& logits = response->outputs(0);
  EXPECT_EQ(logits.datatype(), "FP32");
  EXPECT_EQ((std::vector<int64_t>(logits.shape().begin(), logits.shape().end())),
            (std::vector<int64_t>{2, 3}));
  std::vector<float> expected = FakeLogits("first", 3);
  const std::vector<float> second = FakeLogits("second one", 3);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(Floats(logits.contents().fp32_contents()), expected);

  const auto probabilities = Floats(response->outputs(1).contents().fp32_contents());
  ASSERT_EQ(probabilities.size(), 6u);
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += std::exp(second[i]);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(probabilities[3 + i], std::exp(second[i]) / sum, 1e-6);
  }
  const char* names[] = {"zero", "one", "two"};
  const auto best = std::max_element(second.begin(), second.end()) - second.begin();
  EXPECT_EQ(response->outputs(2).datatype(), "BYTES");
  EXPECT_EQ(response->outputs(2).contents().bytes_contents(1), names[best]);
}

TEST(Infer, RawInRawOut) {
  Backend backend;
  auto request = ParseInfer(R"(model_name: "one"
      inputs { name: "input_ids" datatype: "INT64" shape: [1,3] }
      inputs { name: "attention_mask" datatype: "INT32" shape: [1,3] }
      outputs { name: "label" } outputs { name: "logits" })");
  request.add_raw_input_contents(Bytes(std::vector<int64_t>{97, 98, 99}));
  request.add_raw_input_contents(Bytes(std::vector<int32_t>{1, 1, 1}));
  const auto response = Infer(backend, request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(OutputNames(*response), (std::vector<std::string>{"label", "logits"}));
  ASSERT_EQ(response->raw_output_contents_size(), 2);
  EXPECT_FALSE(response->outputs(1).has_contents());
  EXPECT_EQ(RawFloats(response->raw_output_contents(1)), FakeLogits("abc", 3));
  const std::vector<float> logits = FakeLogits("abc", 3);
  const char* names[] = {"zero", "one", "two"};
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  EXPECT_EQ(response->raw_output_contents(0), RawStrings({names[best]}));
}

TEST(Infer, RawTextAsColumn) {
  Backend backend;
  auto request = ParseInfer(R"(model_name: "one"
      inputs { name: "text" datatype: "BYTES" shape: [2,1] } outputs { name: "logits" })");
  request.add_raw_input_contents(RawStrings({"a", ""}));
  EXPECT_EQ(Infer(backend, request).status().code(), absl::StatusCode::kInvalidArgument);
  request.set_raw_input_contents(0, RawStrings({"a", "bc"}));
  const auto response = Infer(backend, request);
  ASSERT_TRUE(response.ok()) << response.status();
  std::vector<float> expected = FakeLogits("a", 3);
  for (const float value : FakeLogits("bc", 3)) expected.push_back(value);
  EXPECT_EQ(RawFloats(response->raw_output_contents(0)), expected);
}

TEST(Infer, TrailingZerosOfTheMaskAreCut) {
  Backend backend;
  const auto response = Infer(backend, R"(model_name: "one"
      inputs { name: "input_ids" datatype: "INT32" shape: [2,3]
               contents { int_contents: [97, 98, 99, 120, 1, 1] } }
      inputs { name: "attention_mask" datatype: "INT64" shape: [2,3]
               contents { int64_contents: [1, 1, 1, 1, 0, 0] } }
      inputs { name: "global_attention_mask" datatype: "INT64" shape: [2,3]
               contents { int64_contents: [1, 0, 0, 1, 0, 1] } }
      outputs { name: "logits" })");
  ASSERT_TRUE(response.ok()) << response.status();
  std::vector<float> expected = FakeLogits("abc", 3);
  for (const float value : FakeLogits("x", 3)) expected.push_back(value);
  EXPECT_EQ(Floats(response->outputs(0).contents().fp32_contents()), expected);
  const models::Request last = backend.last_request();
  EXPECT_EQ(last.tokens->ids, std::vector<int32_t>{120});
  EXPECT_TRUE(last.tokens->attention_mask.empty());
  EXPECT_EQ(last.tokens->global_mask, std::vector<uint8_t>{1});
}

TEST(Infer, HolesStayAndPaddingStaysForOutputsPerToken) {
  Backend backend;
  const std::string request = R"(model_name: "one"
      inputs { name: "input_ids" datatype: "INT64" shape: [1,4]
               contents { int64_contents: [97, 98, 99, 1] } }
      inputs { name: "attention_mask" datatype: "INT64" shape: [1,4]
               contents { int64_contents: [1, 0, 1, 0] } })";
  ASSERT_TRUE(Infer(backend, request).ok());
  EXPECT_EQ(backend.last_request().tokens->attention_mask, (std::vector<uint8_t>{1, 0, 1}));
  ASSERT_TRUE(Infer(backend, request + R"(outputs { name: "last_hidden_state" })").ok());
  EXPECT_EQ(backend.last_request().tokens->attention_mask, (std::vector<uint8_t>{1, 0, 1, 0}));
}

TEST(Infer, ParametersReachTheModel) {
  Backend backend;
  auto request = ParseInfer(kTwoTexts);
  (*request.mutable_parameters())["truncate"].set_string_param("true");
  (*request.mutable_parameters())["global_tokens"].set_string_param("<s>");
  (*request.mutable_parameters())["timeout"].set_int64_param(60'000'000);
  const auto response = Infer(backend, request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(backend.last_request().truncate, true);
  EXPECT_EQ(backend.last_request().global_tokens, std::vector<std::string>{"<s>"});
  EXPECT_EQ(backend.last_request().tensors, std::vector<std::string>{"logits"});
  EXPECT_FALSE(backend.last_request().typed);
  backend.AddSlow();
  request.set_model_name("slow");
  const absl::Status late = Infer(backend, request).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
  const double left = Backend::SecondsLeft(std::string(late.message()));
  EXPECT_LE(left, 60) << late;
  EXPECT_GT(left, 50) << late;
}

TEST(Infer, ResponseParametersTellTimeAndTruncation) {
  Backend backend;
  auto request = ParseInfer(R"(model_name: "one"
      inputs { name: "text" datatype: "BYTES" shape: [1] }
      parameters { key: "truncate" value { bool_param: true } })");
  request.add_raw_input_contents(RawStrings({std::string(5000, 'a')}));
  // The request waits for another, and then computes.
  constexpr absl::Duration kWait = absl::Milliseconds(40), kCompute = absl::Milliseconds(15);
  FakeOptions sleeps;
  sleeps.layer_item_time = kCompute;
  backend.store.Add("sleeps", sleeps);
  request.set_model_name("sleeps");
  backend.control->advance.Close();
  Waiter<inference::ModelInferResponse> other, waiter;
  backend.api.Infer(TestCall(), ParseInfer(kTwoTexts), other.reply());
  ASSERT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  const absl::Time start = server::SteadyNow();
  backend.api.Infer(TestCall("ModelInfer"), request, waiter.reply());
  ASSERT_TRUE(Eventually([&] { return backend.engine.waiting() >= 1; }));
  absl::SleepFor(kWait);
  backend.control->advance.Open();
  const auto response = waiter.Get();
  const absl::Duration whole = server::SteadyNow() - start;
  ASSERT_TRUE(response.ok()) << response.status();
  const auto& parameters = response->parameters();
  EXPECT_EQ(parameters.at("truncated_tokens").int64_param(), 5000 - 4096);
  const auto queued = absl::Microseconds(parameters.at("queue_us").int64_param());
  const auto computed = absl::Microseconds(parameters.at("compute_us").int64_param());
  EXPECT_GE(queued, kWait);
  EXPECT_GE(computed, kCompute);
  EXPECT_LE(queued + computed, whole + absl::Microseconds(2));
  EXPECT_EQ(parameters.at("batch_items").int64_param(), 1);
  EXPECT_TRUE(other.Get().ok());
}

TEST(Infer, EveryEncoderGivesEmbeddingAndHiddenState) {
  Backend backend;
  const auto response = Infer(backend, R"(model_name: "one"
      inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "abc" } }
      outputs { name: "last_hidden_state" } outputs { name: "embedding" })");
  ASSERT_TRUE(response.ok()) << response.status();
  const auto shape_of = [&](int i) {
    const auto& shape = response->outputs(i).shape();
    return std::vector<int64_t>(shape.begin(), shape.end());
  };
  EXPECT_EQ(shape_of(0), (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(shape_of(1), (std::vector<int64_t>{1, 4}));
}

TEST(Infer, AFailedItemCancelsTheOthers) {
  Backend backend;
  backend.control->prepare.Close();
  Waiter<inference::ModelInferResponse> waiter;
  backend.api.Infer(TestCall("ModelInfer"), ParseInfer(R"(model_name: "one"
      inputs { name: "text" datatype: "BYTES" shape: [3]
               contents { bytes_contents: ["!prepare", "b", "c"] } })"),
                    waiter.reply());
  backend.control->prepare.Open();
  const auto result = waiter.Get();
  EXPECT_NE(std::string(result.status().message()).find("item 0: "), std::string::npos);
  EXPECT_EQ(backend.cancelled(), 2);
  EXPECT_EQ(backend.control->begun, 0);
}

TEST(Infer, CancelReachesTheEngine) {
  Backend backend;
  backend.control->advance.Close();
  Waiter<inference::ModelInferResponse> waiter;
  const server::Api::Pending pending =
      backend.api.Infer(TestCall(), ParseInfer(kTwoTexts), waiter.reply());
  ASSERT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  server::Api::Cancel(pending);
  backend.control->advance.Open();
  EXPECT_EQ(waiter.Get().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(backend.cancelled(), 2);
}

TEST(Infer, RequestsAreCountedByMethodAndCode) {
  Backend backend;
  ASSERT_TRUE(Infer(backend, kTwoTexts).ok());
  ASSERT_FALSE(Infer(backend, R"(model_name: "nobody knows this")").ok());
  const std::string text = backend.metrics.Serialize();
  EXPECT_EQ(text.find("nobody knows this"), std::string::npos);
  EXPECT_NE(text.find(R"(method="ModelInfer")"), std::string::npos);
  EXPECT_NE(text.find(R"(code="NOT_FOUND")"), std::string::npos);
  EXPECT_NE(text.find(R"(code="OK")"), std::string::npos);
}

}  // namespace
}  // namespace longview::testing
