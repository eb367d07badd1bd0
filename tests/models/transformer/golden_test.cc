// Every case of golden/modernbert and golden/xlm_roberta through the library: each item alone and
// all items in one batch, against the double-precision run; ids and offsets of texts.
#include <gtest/gtest.h>

#include <cstdio>
#include <utility>

#include "models/text/tokenizer.h"
#include "tests/models/transformer/transformer_case.h"

namespace longview::models {
namespace {

std::string TestName(const testing::TestParamInfo<TransformerCaseName>& info) {
  return info.param.family + "_" + info.param.name;
}

class TransformerGoldenTest : public testing::TestWithParam<TransformerCaseName> {
 protected:
  const TransformerCase case_{GetParam()};
};

TEST_P(TransformerGoldenTest, AloneAndTogether) {
  ASSERT_FALSE(case_.requests().empty());
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto model = case_.golden().Load(dtype);
    if (model->info().dtype != dtype) continue;
    std::vector<Request> requests;
    std::vector<Answer> alone;
    for (Request request : case_.requests()) {
      // The tokenizer's masks are asked for by text.
      if (request.tensors[0] == "mask_logits" && !model->info().has_tokenizer) continue;
      alone.push_back(RunAlone(*model, request));
      requests.push_back(std::move(request));
    }
    const double limit = dtype == "fp32" ? case_.golden().tolerance("logits") : 0.5;
    const double error = case_.Error(alone);
    EXPECT_LE(error, limit);
    const std::vector<Answer> together = RunTogether(*model, requests);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[i].tensors[0].data, alone[i].tensors[0].data) << "request " << i;
    }
    std::printf("%-40s %s largest error %.2e\n", GetParam().name.c_str(), dtype.c_str(), error);
  }
}

// Documents that want only a few rows take another way through the last layer.
TEST_P(TransformerGoldenTest, TheLastLayerForNeededRowsOnlyGivesTheSameBits) {
  const auto model = case_.golden().Load("fp32");
  for (int i = 0; i < case_.golden().items(); ++i) {
    Request some = TokenRequest(Task::kEmbedding, case_.golden().Tokens(i), {"embedding"});
    some.pooling = "cls";
    Request all = some;
    all.tensors = {"embedding", "last_hidden_state"};
    EXPECT_EQ(RunAlone(*model, some).tensors.at(0).data, RunAlone(*model, all).tensors.at(0).data)
        << "item " << i;
  }
}

// Ids and offsets of texts and pairs as the fixture's tokenizer gives them.
TEST_P(TransformerGoldenTest, TokenizesAsTheLibrary) {
  if (GetParam().name.find("text_") == std::string::npos) GTEST_SKIP() << "no texts";
  const auto tokenizer = Tokenizer::Load(case_.golden().directory());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const nlohmann::json& text : case_.golden().Texts()) {
    EncodeOptions options;
    options.max_length = static_cast<int>(text["input_ids"].size());
    const std::string first = text["text"];
    // To HuggingFace an empty second text is none.
    const bool pair =
        text.contains("text_pair") && text["text_pair"].is_string() && text["text_pair"] != "";
    const auto encoded =
        pair ? tokenizer->EncodePair(first, text["text_pair"].get<std::string>(), options)
             : tokenizer->Encode(first, options);
    ASSERT_TRUE(encoded.ok()) << encoded.status();
    EXPECT_EQ(encoded->encoding.ids, text["input_ids"].get<std::vector<int32_t>>()) << first;
    if (!text.contains("offsets_codepoints")) continue;
    std::vector<std::pair<int, int>> offsets;
    for (const auto& offset : encoded->encoding.offsets) {
      offsets.emplace_back(offset.begin, offset.end);
    }
    EXPECT_EQ(offsets, (text["offsets_codepoints"].get<std::vector<std::pair<int, int>>>()))
        << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, TransformerGoldenTest, testing::ValuesIn(TransformerCase::Names()),
                         TestName);

// Directories that would be misread are refused, with the key in the message.
TEST(TransformerRefusalTest, ConfigsAreRefusedByName) {
  for (const std::string& name : GoldenCase::Present("modernbert", {"refused_configs"})) {
    const GoldenCase golden(name, "modernbert");
    for (const auto& [directory, words] : golden.description().at("refused").items()) {
      const auto model = LoadModel(golden.directory("refused/" + directory), {.dtype = "fp32"});
      ASSERT_FALSE(model.ok()) << directory;
      bool named = false;
      for (const auto& word : words) {
        named = named || model.status().message().find(word) != std::string::npos;
      }
      EXPECT_TRUE(named) << model.status();
    }
  }
}

}  // namespace
}  // namespace longview::models
