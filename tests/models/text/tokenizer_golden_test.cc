// Every record of golden/tokenizers that goes through the tokenizers crate, identical.
#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/text/tokenizer.h"
#include "tests/models/text/golden_file.h"

namespace longview::models {
namespace {

using nlohmann::json;

using Offsets = std::vector<std::pair<int, int>>;

Offsets Pairs(const std::vector<Encoding::Range>& ranges) {
  Offsets pairs;
  for (const auto& range : ranges) pairs.emplace_back(range.begin, range.end);
  return pairs;
}

Tokenizer LoadGolden(const std::string& name) {
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Load(TokenizerGolden(name) / "model");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

EncodeResult MustEncode(const Tokenizer& tokenizer, const json& record, EncodeOptions options) {
  const auto text = record.value("text", record.value("a", ""));
  const auto pair = record.contains("b") ? record["b"] : json();
  auto result = pair.is_string() ? tokenizer.EncodePair(text, pair.get<std::string>(), options)
                                 : tokenizer.Encode(text, options);
  EXPECT_TRUE(result.ok()) << result.status() << " " << record.dump().substr(0, 300);
  return result.ok() ? *std::move(result) : EncodeResult();
}

void CheckText(const Tokenizer& tokenizer, const json& record) {
  SCOPED_TRACE(record["text"].dump());
  EncodeOptions options;
  const Encoding encoding = MustEncode(tokenizer, record, options).encoding;
  EXPECT_EQ(json(encoding.ids), record["ids"]);
  EXPECT_EQ(json(Pairs(encoding.offsets)), record["offsets_codepoints"]);
  if (record.contains("special_tokens_mask")) {
    EXPECT_EQ(json(encoding.special_mask), record["special_tokens_mask"]);
  }
  std::vector<std::string> tokens;
  for (int32_t id : encoding.ids) tokens.push_back(*tokenizer.IdToToken(id));
  EXPECT_EQ(json(tokens), record["tokens"]);

  options.offsets = OffsetUnit::kBytes;
  const Encoding bytes = MustEncode(tokenizer, record, options).encoding;
  EXPECT_EQ(json(Pairs(bytes.offsets)), record["offsets_bytes"]);

  EXPECT_EQ(tokenizer.Decode(encoding.ids, true).value(), record["decoded"]);
  if (record.contains("decoded_with_specials")) {
    EXPECT_EQ(tokenizer.Decode(encoding.ids, false).value(), record["decoded_with_specials"]);
  }
}

class TextsGolden : public testing::TestWithParam<const char*> {};

TEST_P(TextsGolden, Texts) {
  const Tokenizer tokenizer = LoadGolden(GetParam());
  const json expected = ReadGolden(GetParam());
  ASSERT_FALSE(expected["texts"].empty());
  for (const json& record : expected["texts"]) CheckText(tokenizer, record);
  for (const json& record : expected.value("pairs", json::array())) {
    SCOPED_TRACE(record.dump());
    const Encoding encoding = MustEncode(tokenizer, record, {}).encoding;
    EXPECT_EQ(json(encoding.ids), record["ids"]);
    EXPECT_EQ(json(encoding.type_ids), record["type_ids"]);
    EXPECT_EQ(json(Pairs(encoding.offsets)), record["offsets_codepoints"]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TextsGolden,
                         testing::Values("roberta_bpe", "bert_wordpiece_uncased",
                                         "bert_wordpiece_cased"),
                         [](const auto& info) { return std::string(info.param); });

TEST(RobertaGolden, SpecialTokensInTheText) {
  const Tokenizer tokenizer = LoadGolden("roberta_bpe");
  const json expected = ReadGolden("roberta_bpe");
  ASSERT_FALSE(expected["special_texts"].empty());
  for (const json& record : expected["special_texts"]) {
    SCOPED_TRACE(record["text"].dump());
    EncodeOptions options;
    const Encoding matched = MustEncode(tokenizer, record, options).encoding;
    EXPECT_EQ(json(matched.ids), record["ids_specials_matched"]);
    EXPECT_EQ(json(Pairs(matched.offsets)), record["offsets_specials_matched"]);
    options.match_special_tokens = false;
    const Encoding literal = MustEncode(tokenizer, record, options).encoding;
    EXPECT_EQ(json(literal.ids), record["ids_specials_as_text"]);
    EXPECT_EQ(json(Pairs(literal.offsets)), record["offsets_specials_as_text"]);
  }
}

TEST(RobertaGolden, DecodesArbitraryIds) {
  const Tokenizer tokenizer = LoadGolden("roberta_bpe");
  const json expected = ReadGolden("roberta_bpe");
  ASSERT_FALSE(expected["decode"].empty());
  for (const json& record : expected["decode"]) {
    const auto ids = record["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.Decode(ids, true).value(), record["decoded"]);
    EXPECT_EQ(tokenizer.Decode(ids, false).value(), record["decoded_with_specials"]);
  }
}

// The offsets of roberta_pairs_truncation were trimmed twice: once when each text was encoded and
// again by the template. A pair encoded in one call, as everybody does, is trimmed once; this
// takes the leading and trailing spaces of each token off a second time.
Offsets TrimmedAgain(const Tokenizer& tokenizer, const Encoding& encoding) {
  constexpr std::string_view kSpace = "\u0120";
  Offsets offsets = Pairs(encoding.offsets);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const std::string token = *tokenizer.IdToToken(encoding.ids[i]);
    int leading = 0, trailing = 0;
    std::string_view rest = token;
    for (; rest.starts_with(kSpace); rest.remove_prefix(kSpace.size())) ++leading;
    for (rest = token; rest.ends_with(kSpace); rest.remove_suffix(kSpace.size())) ++trailing;
    auto& [begin, end] = offsets[i];
    begin = std::min(begin + leading, end);
    if (end >= trailing) end = std::max(end - trailing, begin);
  }
  return offsets;
}

TruncationStrategy Strategy(const std::string& name) {
  if (name == "only_first") return TruncationStrategy::kOnlyFirst;
  if (name == "only_second") return TruncationStrategy::kOnlySecond;
  return TruncationStrategy::kLongestFirst;
}

json Sequences(const Encoding& encoding) {
  json list = json::array();
  for (int8_t sequence : encoding.sequences) {
    list.push_back(sequence < 0 ? json() : json(static_cast<int>(sequence)));
  }
  return list;
}

void CheckTruncation(const Tokenizer& tokenizer, const json& record) {
  const std::string strategy = record["strategy"];
  EncodeOptions options;
  options.max_length = record["max_length"];
  options.strategy = Strategy(strategy);
  options.cut_left = record.value("direction", "right") == "left";
  // Windows of two texts that are both cut are refused; only the main one is compared there.
  options.windows = !(record.contains("b") && strategy == "longest_first");
  options.stride = record["stride"];
  if (record.contains("error")) {
    const auto result = record.contains("b")
                            ? tokenizer.EncodePair(record["a"].get<std::string>(),
                                                   record["b"].get<std::string>(), options)
                            : tokenizer.Encode(record["a"].get<std::string>(), options);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    return;
  }
  const EncodeResult result = MustEncode(tokenizer, record, options);
  EXPECT_EQ(json(result.encoding.ids), record["ids"]);
  if (record.contains("type_ids")) {
    EXPECT_EQ(json(result.encoding.type_ids), record["type_ids"]);
    EXPECT_EQ(Sequences(result.encoding), record["sequence_ids"]);
    EXPECT_EQ(json(TrimmedAgain(tokenizer, result.encoding)), record["offsets_codepoints"]);
    const int before =
        record["lengths_before"][0].get<int>() + record["lengths_before"][1].get<int>();
    EXPECT_EQ(result.tokens_cut, before - (static_cast<int>(result.encoding.ids.size()) - 4));
  }
  if (record.contains("overflow_ids")) {
    json windows = json::array();
    for (const Encoding& window : result.windows) windows.push_back(window.ids);
    EXPECT_EQ(windows, record["overflow_ids"]);
  }
}

// The served models of golden/longformer that come with text.
TEST(LongformerGolden, TextsOfTheServedModels) {
  const struct {
    const char* name;
    TruncationStrategy strategy;
  } cases[] = {{"text_classification", TruncationStrategy::kLongestFirst},
               {"text_fill_mask", TruncationStrategy::kLongestFirst},
               {"text_question_answering", TruncationStrategy::kOnlySecond}};
  for (const auto& golden : cases) {
    const auto directory = TokenizerGolden("..") / "longformer" / golden.name;
    const auto tokenizer = Tokenizer::Load(directory / "model");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EncodeOptions options;
    options.max_length = static_cast<int>(tokenizer->model_max_length());
    options.strategy = golden.strategy;
    std::ifstream in(directory / "texts.json");
    const json texts = json::parse(in);
    ASSERT_FALSE(texts.empty());
    for (const json& record : texts) {
      json request = {{"text", record.contains("question") ? record["question"] : record["text"]}};
      if (record.contains("context")) request["b"] = record["context"];
      if (record.contains("text_pair")) request["b"] = record["text_pair"];
      const Encoding encoding = MustEncode(*tokenizer, request, options).encoding;
      EXPECT_TRUE(json(encoding.ids) == record["input_ids"]) << request.dump().substr(0, 200);
      if (record.contains("offsets_codepoints")) {
        EXPECT_TRUE(json(Pairs(encoding.offsets)) == record["offsets_codepoints"])
            << request.dump().substr(0, 200);
      }
    }
  }
}

TEST(RobertaGolden, OffsetsOfTruncatedPairs) {
  // From tokenizers 0.23.3 with truncation enabled on the tokenizer.
  const Tokenizer tokenizer = LoadGolden("roberta_pairs_truncation");
  EncodeOptions options;
  options.max_length = 16;
  const auto result = tokenizer.EncodePair("\u65e5\u672c notice be don't reads",
                                           "who n\u00e9 be by copied", options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Pairs(result->encoding.offsets), (Offsets{{0, 0},
                                                      {0, 1},
                                                      {0, 1},
                                                      {0, 1},
                                                      {1, 2},
                                                      {1, 2},
                                                      {1, 2},
                                                      {0, 0},
                                                      {0, 0},
                                                      {0, 1},
                                                      {1, 2},
                                                      {2, 3},
                                                      {4, 5},
                                                      {5, 6},
                                                      {5, 6},
                                                      {0, 0}}));
}

TEST(RobertaGolden, PairsAndTruncation) {
  const Tokenizer tokenizer = LoadGolden("roberta_pairs_truncation");
  const json expected = ReadGolden("roberta_pairs_truncation");
  ASSERT_EQ(expected.size(), 530u);
  for (const json& record : expected) {
    SCOPED_TRACE(record.dump().substr(0, 400));
    CheckTruncation(tokenizer, record);
  }
}

}  // namespace
}  // namespace longview::models
