// Texts that are lower-cased in front of a cased tokenizer, as `do_lower_case` of
// sentence-transformers asks: the tokens of Python's str.lower, at places of the text that came.
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/text/tokenizer.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using Range = Encoding::Range;

using longview::testing::TempDirectory;

class LowerCase : public ::testing::Test {
 protected:
  LowerCase() {
    directory_.Write("tokenizer_config.json",
                     R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false})");
    std::string words;
    for (const char* word : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "long", "οδος", "i̇x",
                             "i", "##̇", "café", "[", "mask", "]", "ⱥb"}) {
      words += std::string(word) + "\n";
    }
    directory_.Write("vocab.txt", words);
  }

  Encoding Encode(const std::string& text, EncodeOptions options = {}) {
    options.add_special_tokens = false;
    const auto tokenizer = Tokenizer::Load(directory_.path(), true);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    auto result = tokenizer->Encode(text, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return std::move(result->encoding);
  }

  TempDirectory directory_;
};

TEST_F(LowerCase, TokensAreThoseOfTheLoweredText) {
  EXPECT_EQ(Encode("LoNG CAFÉ").ids, (std::vector<int32_t>{5, 10}));
  EXPECT_EQ(Encode("ΟΔΟΣ").ids, (std::vector<int32_t>{6}));  // A final sigma.
}

TEST_F(LowerCase, SpecialTokensInCapitalsAreNoneAnyMore) {
  EXPECT_EQ(Encode("[MASK]").ids, (std::vector<int32_t>{11, 12, 13}));
}

TEST_F(LowerCase, OffsetsAreThoseOfTheTextThatCame) {
  EXPECT_EQ(Encode("İX LONG").offsets, (std::vector<Range>{{0, 2}, {3, 7}}));
  // Two tokens of one character share its place.
  const Encoding halves = Encode("İ LONG");
  EXPECT_EQ(halves.ids, (std::vector<int32_t>{8, 9, 5}));
  EXPECT_EQ(halves.offsets, (std::vector<Range>{{0, 1}, {0, 1}, {2, 6}}));
}

TEST_F(LowerCase, OffsetsInBytes) {
  EncodeOptions bytes;
  bytes.offsets = OffsetUnit::kBytes;
  // U+023A has two bytes, its lower case three.
  EXPECT_EQ(Encode("ȺB LONG", bytes).offsets, (std::vector<Range>{{0, 3}, {4, 8}}));
}

TEST_F(LowerCase, LongTextsInPieces) {
  std::string text = "İX";
  for (int i = 0; i < 100000; ++i) text += " LONG";
  const Encoding encoding = Encode(text);
  ASSERT_EQ(encoding.ids.size(), 100001u);
  EXPECT_EQ(encoding.ids.back(), 5);
  EXPECT_EQ(encoding.offsets.back(), (Range{499998, 500002}));
}

}  // namespace
}  // namespace longview::models
