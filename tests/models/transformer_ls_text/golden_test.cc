// Every case of golden/transformer_ls_text through the library: each item alone and all items in
// one batch, ids and text, logits and the vector that enters the head, against the double-precision
// run of the published code.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/models/transformer_ls_text/ls_text_case.h"

namespace longview::models {
namespace {

class LsTextGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  bool pair() const { return case_.pair(); }
  int items() const { return case_.items(); }

  const LsTextCase case_{GetParam()};
  const GoldenCase& golden_ = case_.golden();
};

TEST_P(LsTextGoldenTest, LogitsAloneAndTogether) {
  ASSERT_GT(items(), 0);
  const std::vector<Request> requests = case_.Requests();
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto model = golden_.Load(dtype);
    if (model->info().dtype != dtype) continue;
    std::vector<Answer> alone;
    for (const Request& request : requests) alone.push_back(RunAlone(*model, request));
    const double limit = dtype == "fp32" ? golden_.tolerance("logits") : 0.2;
    const double error = case_.Error(alone);
    EXPECT_LE(error, limit);
    EXPECT_LE(case_.Error(RunTogether(*model, requests)), limit);
    std::printf("%-28s %s largest error %.2e\n", GetParam().c_str(), dtype.c_str(), error);
  }
}

TEST_P(LsTextGoldenTest, TheDefaultEmbeddingEntersTheHead) {
  const auto model = golden_.Load("fp32");
  const std::vector<double> pooled = golden_.Expected("pooled");
  const int documents = pair() ? 2 : 1;
  for (int i = 0; i < items(); ++i) {
    for (int d = 0; d < documents; ++d) {
      const std::string name = pair() ? "input_ids_" + std::to_string(d) : "input_ids";
      const Request request =
          TokenRequest(Task::kEmbedding, golden_.Tokens(i, name), {"embedding"});
      EXPECT_LE(LargestDifference(RunAlone(*model, request).tensors.at(0).floats(),
                                  RowOf(pooled, i * documents + d, items() * documents)),
                golden_.tolerance("pooled"))
          << "item " << i << " document " << d;
    }
  }
}

using LsTextTextTest = LsTextGoldenTest;

TEST_P(LsTextTextTest, TextGivesTheBitsOfItsIds) {
  const std::string first = pair() ? "text_bytes_0." : "text_bytes.";
  const auto model = golden_.Load("fp32");
  for (int i = 0; i < items(); ++i) {
    const Request ids = case_.IdsOf(i);
    Request text;
    text.task = ids.task;
    text.tensors = ids.tensors;
    text.text = golden_.Bytes(first + std::to_string(i));
    if (pair()) text.text_pair = golden_.Bytes("text_bytes_1." + std::to_string(i));
    EXPECT_EQ(RunAlone(*model, text).tensors.at(0).data, RunAlone(*model, ids).tensors.at(0).data)
        << "item " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LsTextGoldenTest,
                         testing::ValuesIn(GoldenCase::Names("transformer_ls_text")),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Cases, LsTextTextTest,
                         testing::Values("listops_w8_r32", "retrieval_pair_w8_r32", "text_w1_r1"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
