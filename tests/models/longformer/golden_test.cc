// Every token-level case of golden/longformer through the library: each item alone and all items in
// one batch, against the double-precision run, fp32 within the case's tolerance; the error of
// bf16 is printed beside and held to a loose bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

// An output of the library and what the fixture calls it.
struct Output {
  std::string tensor;
  std::string expected;
};

struct TokenCase {
  std::string name;
  Task task;
  std::vector<Output> outputs;
};

void PrintTo(const TokenCase& test, std::ostream* out) { *out << test.name; }

const TokenCase kCases[] = {
    {"classification", Task::kTextClassification, {{"logits", "logits"}}},
    {"classification_multilabel", Task::kTextClassification, {{"logits", "logits"}}},
    {"classification_regression", Task::kTextClassification, {{"logits", "logits"}}},
    {"classification_padded_batch", Task::kTextClassification, {{"logits", "logits"}}},
    {"dilated",
     Task::kTextClassification,
     {{"logits", "logits"}, {"last_hidden_state", "last_hidden_state"}}},
    {"head64_window128",
     Task::kTextClassification,
     {{"logits", "logits"}, {"last_hidden_state", "last_hidden_state"}}},
    {"token_classification", Task::kTokenClassification, {{"logits", "logits"}}},
    {"masked_lm", Task::kFillMask, {{"logits", "logits"}}},
    {"masked_lm_untied", Task::kFillMask, {{"logits", "logits"}}},
    {"embeddings", Task::kEmbedding, {{"last_hidden_state", "last_hidden_state"}}},
    {"global_patterns", Task::kEmbedding, {{"last_hidden_state", "last_hidden_state"}}},
    {"question_answering",
     Task::kQuestionAnswering,
     {{"start_logits", "start_logits"}, {"end_logits", "end_logits"}}},
    {"text_classification", Task::kTextClassification, {{"logits", "logits"}}},
    {"text_question_answering",
     Task::kQuestionAnswering,
     {{"start_logits", "start_logits"}, {"end_logits", "end_logits"}}},
};

class GoldenTest : public testing::TestWithParam<TokenCase> {
 protected:
  // Largest error over all items and outputs that the fixture expects.
  double Error(const GoldenCase& golden, const std::vector<Answer>& answers) {
    double largest = 0;
    int compared = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      for (const Output& output : GetParam().outputs) {
        const std::string name = output.expected + "." + std::to_string(i);
        if (!golden.Expects(name)) continue;
        const HostTensor* tensor = answers[i].Find(output.tensor);
        EXPECT_NE(tensor, nullptr) << name;
        if (tensor == nullptr) continue;
        const double error = LargestDifference(tensor->floats(), golden.Expected(name));
        EXPECT_LE(error, limit_) << name;
        largest = std::max(largest, error);
        ++compared;
      }
    }
    EXPECT_GT(compared, 0);
    return largest;
  }

  std::vector<Request> Requests(const GoldenCase& golden) {
    std::vector<std::string> tensors;
    for (const Output& output : GetParam().outputs) tensors.push_back(output.tensor);
    std::vector<Request> requests;
    for (int i = 0; i < golden.items(); ++i) {
      requests.push_back(TokenRequest(GetParam().task, golden.Tokens(i), tensors));
    }
    return requests;
  }

  double limit_ = 0;
};

TEST_P(GoldenTest, AloneAndTogether) {
  const GoldenCase golden(GetParam().name);
  const std::vector<Request> requests = Requests(golden);
  ASSERT_FALSE(requests.empty());
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto model = golden.Load(dtype);
    if (model->info().dtype != dtype) continue;
    limit_ = dtype == "fp32" ? golden.tolerance("logits") : 0.5;
    std::vector<Answer> alone;
    for (const Request& request : requests) alone.push_back(RunAlone(*model, request));
    const double error = Error(golden, alone);
    Error(golden, RunTogether(*model, requests));
    std::printf("%-28s %s largest error %.2e\n", GetParam().name.c_str(), dtype.c_str(), error);
  }
}

// Documents that want only a few rows take another way through the last layer.
TEST_P(GoldenTest, TheLastLayerForNeededRowsOnlyGivesTheSameBits) {
  const GoldenCase golden(GetParam().name);
  const auto model = golden.Load("fp32");
  for (int i = 0; i < golden.items(); ++i) {
    Request some = TokenRequest(Task::kEmbedding, golden.Tokens(i), {"embedding"});
    some.pooling = "cls";
    Request all = some;
    all.tensors = {"embedding", "last_hidden_state"};
    const Answer few = RunAlone(*model, some), many = RunAlone(*model, all);
    ASSERT_EQ(few.tensors.size(), 1u);
    EXPECT_EQ(few.tensors[0].data, many.tensors[0].data) << "item " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace longview::models
