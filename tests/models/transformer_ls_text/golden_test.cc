// Every case of golden/transformer_ls_text: ids and text, and the vector that enters the head
// against the double-precision run of the published code.
#include <gtest/gtest.h>

#include "tests/models/encoder/encoder_case.h"

namespace longview::models {
namespace {

class LsTextGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  const EncoderCase case_{{"transformer_ls_text", GetParam()}};
  const GoldenCase& golden_ = case_.golden();
};

TEST_P(LsTextGoldenTest, TheDefaultEmbeddingEntersTheHead) {
  const auto model = golden_.Load("fp32");
  std::vector<TokenInput> documents;
  for (const Request& request : case_.requests()) {
    documents.push_back(*request.tokens);
    if (request.tokens_pair) documents.push_back(*request.tokens_pair);
  }
  const std::vector<double> pooled = golden_.Expected("pooled");
  const int count = static_cast<int>(documents.size());
  for (int d = 0; d < count; ++d) {
    const Request request = TokenRequest(Task::kEmbedding, documents[d], {"embedding"});
    EXPECT_LE(LargestDifference(RunAlone(*model, request).tensors.at(0).floats(),
                                RowOf(pooled, d, count)),
              golden_.tolerance("pooled"))
        << "document " << d;
  }
}

using LsTextTextTest = LsTextGoldenTest;

TEST_P(LsTextTextTest, TextGivesTheBitsOfItsIds) {
  const auto model = golden_.Load("fp32");
  for (size_t i = 0; i < case_.requests().size(); ++i) {
    const Request& ids = case_.requests()[i];
    const bool pair = ids.tokens_pair.has_value();
    Request text;
    text.task = ids.task;
    text.tensors = ids.tensors;
    text.text = golden_.Bytes((pair ? "text_bytes_0." : "text_bytes.") + std::to_string(i));
    if (pair) text.text_pair = golden_.Bytes("text_bytes_1." + std::to_string(i));
    EXPECT_EQ(RunAlone(*model, text).tensors.at(0).data, RunAlone(*model, ids).tensors.at(0).data)
        << "item " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LsTextGoldenTest,
                         ::testing::ValuesIn(EncoderCase::Names("transformer_ls_text")),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Cases, LsTextTextTest,
                         ::testing::Values("listops_w8_r32", "retrieval_pair_w8_r32", "text_w1_r1"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
