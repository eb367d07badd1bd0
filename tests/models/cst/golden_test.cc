// Every encoder case of golden/cst through the library: each item alone and all items in one batch,
// logits and last hidden states, against the double-precision run of the definition.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/models/longformer/golden_case.h"

namespace longview::models {
namespace {

class CstGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  bool pair() const { return golden_.HasInput("input_ids_1.0"); }
  std::string first() const { return pair() ? "input_ids_1" : "input_ids"; }
  int items() const { return golden_.items(first()); }
  Task task(const Model& model) const { return model.info().task; }

  Request IdsOf(const Model& model, int item) const {
    Request request = TokenRequest(task(model), golden_.Tokens(item, first()), {"logits"});
    if (pair()) request.tokens_pair = golden_.Tokens(item, "input_ids_2");
    return request;
  }

  double Error(const std::vector<Answer>& answers) const {
    double largest = 0;
    for (int i = 0; i < items(); ++i) {
      largest = std::max(largest,
                         LargestDifference(answers[static_cast<size_t>(i)].tensors.at(0).floats(),
                                           golden_.Expected("logits." + std::to_string(i))));
    }
    return largest;
  }

  const GoldenCase golden_{GetParam(), "cst"};
};

TEST_P(CstGoldenTest, LogitsAloneAndTogether) {
  ASSERT_GT(items(), 0);
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto model = golden_.Load(dtype);
    if (model->info().dtype != dtype) continue;
    std::vector<Request> requests;
    for (int i = 0; i < items(); ++i) requests.push_back(IdsOf(*model, i));
    std::vector<Answer> alone;
    for (const Request& request : requests) alone.push_back(RunAlone(*model, request));
    // Vocabulary logits are wider spread.
    const bool words = task(*model) == Task::kFillMask;
    const double limit = dtype == "fp32" ? golden_.tolerance("logits") : words ? 0.6 : 0.2;
    const double error = Error(alone);
    EXPECT_LE(error, limit);
    EXPECT_LE(Error(RunBatch(*model, requests)), limit);
    std::printf("%-28s %s largest error %.2e\n", GetParam().c_str(), dtype.c_str(), error);
  }
}

TEST_P(CstGoldenTest, LastHiddenStates) {
  const auto model = golden_.Load("fp32");
  const Request request =
      TokenRequest(Task::kEmbedding, golden_.Tokens(0, first()), {"last_hidden_state"});
  EXPECT_LE(LargestDifference(RunAlone(*model, request).tensors.at(0).floats(),
                              golden_.Expected("hidden.last")),
            golden_.tolerance("hidden"));
}

std::vector<std::string> EncoderCases() {
  std::vector<std::string> names = GoldenCase::Names("cst");
  std::erase_if(names, [](const std::string& name) { return name.starts_with("ar_"); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, CstGoldenTest, testing::ValuesIn(EncoderCases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
