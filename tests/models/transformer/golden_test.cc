// ModernBERT and RoBERTa on their golden cases: rows of the last layer, ids and offsets of texts,
// directories that are refused. Answers are compared in tests/models/encoder/golden_test.cc.
#include <gtest/gtest.h>

#include <utility>

#include "models/text/tokenizer.h"
#include "tests/models/encoder/edge_frame.h"
#include "tests/models/encoder/encoder_case.h"

namespace longview::models {
namespace {

class TransformerGoldenTest : public ::testing::TestWithParam<EncoderCaseName> {
 protected:
  const GoldenCase golden_{GetParam().name, GetParam().family};
};

TEST_P(TransformerGoldenTest, TheLastLayerForNeededRowsOnlyGivesTheSameBits) {
  ExpectFewRowsHaveTheSameBits(golden_, "cls");
}

// Ids and offsets of texts and pairs as the fixture's tokenizer gives them.
TEST_P(TransformerGoldenTest, TokenizesAsTheLibrary) {
  if (GetParam().name.find("text_") == std::string::npos) GTEST_SKIP() << "no texts";
  const auto tokenizer = Tokenizer::Load(golden_.directory());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const nlohmann::json& text : golden_.Texts()) {
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

INSTANTIATE_TEST_SUITE_P(Cases, TransformerGoldenTest,
                         ::testing::ValuesIn(EncoderCase::NamesOf({"modernbert", "xlm_roberta"})),
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
