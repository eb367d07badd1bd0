// Every encoder case of golden/luna through the library: each item alone and all items in one
// batch, against the double-precision run of the published modules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/models/longformer/golden_case.h"

namespace longview::models {
namespace {

// The encoders; the other cases are generators.
std::vector<std::string> Encoders() {
  std::vector<std::string> names;
  for (const std::string& name : GoldenCase::Names("luna")) {
    const bool encoder =
        name.starts_with("lra_") || name.starts_with("mlm_") || name.starts_with("seqcls_");
    if (encoder) names.push_back(name);
  }
  return names;
}

class LunaGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  bool pair() const { return golden_.HasInput("input_ids_1.0"); }
  bool mlm() const { return GetParam().starts_with("mlm_"); }
  int items() const { return golden_.items(pair() ? "input_ids_1" : "input_ids"); }

  std::vector<Request> Requests() const {
    std::vector<Request> requests;
    for (int i = 0; i < items(); ++i) {
      if (pair()) {
        requests.push_back(TokenRequest(Task::kTextPairClassification,
                                        golden_.Tokens(i, "input_ids_1"), {"logits"}));
        requests.back().tokens_pair = golden_.Tokens(i, "input_ids_2");
      } else {
        requests.push_back(TokenRequest(mlm() ? Task::kFillMask : Task::kTextClassification,
                                        golden_.Tokens(i), {"logits"}));
      }
    }
    return requests;
  }

  // The expected rows of an item: all, or those at `positions`.
  double Difference(int item, std::span<const float> got) const {
    const std::string suffix = "." + std::to_string(item);
    const std::vector<double> want = golden_.Expected("logits" + suffix);
    if (!golden_.Expects("positions" + suffix)) return LargestDifference(got, want);
    const std::vector<int64_t> positions = golden_.ExpectedIntegers("positions" + suffix);
    const size_t width = want.size() / positions.size();
    std::vector<float> rows;
    for (const int64_t position : positions) {
      const auto begin = got.begin() + position * static_cast<int64_t>(width);
      rows.insert(rows.end(), begin, begin + static_cast<int64_t>(width));
    }
    return LargestDifference(rows, want);
  }

  double Error(const std::vector<Answer>& answers) const {
    double largest = 0;
    for (int i = 0; i < items(); ++i) {
      largest = std::max(largest, Difference(i, answers[i].tensors.at(0).floats()));
    }
    return largest;
  }

  const GoldenCase golden_{GetParam(), "luna"};
};

TEST_P(LunaGoldenTest, LogitsAloneAndTogether) {
  ASSERT_GT(items(), 0);
  const std::vector<Request> requests = Requests();
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto model = golden_.Load(dtype);
    if (model->info().dtype != dtype) continue;
    std::vector<Answer> alone;
    for (const Request& request : requests) alone.push_back(RunAlone(*model, request));
    const double limit = dtype == "fp32" ? golden_.tolerance("logits") : 0.5;
    const double error = Error(alone);
    EXPECT_LE(error, limit);
    EXPECT_LE(Error(RunBatch(*model, requests)), limit);
    std::printf("%-28s %s largest error %.2e\n", GetParam().c_str(), dtype.c_str(), error);
  }
}

// Documents that want only a few rows take another way through the last layer.
TEST_P(LunaGoldenTest, WhoWantsAllRowsGetsTheSameBits) {
  if (pair()) return;
  const auto model = golden_.Load("fp32");
  for (int i = 0; i < items(); ++i) {
    Request some = TokenRequest(Task::kEmbedding, golden_.Tokens(i), {"embedding"});
    some.pooling = "mean";
    Request all = some;
    all.tensors = {"embedding", "last_hidden_state"};
    EXPECT_EQ(RunAlone(*model, some).tensors.at(0).data, RunAlone(*model, all).tensors.at(0).data)
        << "item " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LunaGoldenTest, testing::ValuesIn(Encoders()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
