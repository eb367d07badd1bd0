#include "models/text/tokenizer.h"

#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/text/tokenizer_ffi/tokenizer_ffi.h"
#include "tests/models/text/golden_file.h"

namespace longview::models {
namespace {

Tokenizer Roberta() {
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Load(TokenizerGolden("roberta_bpe") / "model");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

void AppendUtf8(char32_t point, std::string& text) {
  if (point < 0x80) {
    text.push_back(static_cast<char>(point));
    return;
  }
  const int following = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  text.push_back(static_cast<char>((0xf00 >> (following + 1) & 0xff) | point >> (6 * following)));
  for (int i = following - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(0x80 | (point >> (6 * i) & 63)));
  }
}

TEST(Tokenizer, FactsOfTheDirectory) {
  const Tokenizer tokenizer = Roberta();
  EXPECT_EQ(tokenizer.vocab_size(), 1000);
  EXPECT_EQ(tokenizer.max_id(), 999);
  EXPECT_EQ(tokenizer.model_max_length(), 512);
  EXPECT_FALSE(tokenizer.cuts_left());
  EXPECT_EQ(tokenizer.special().bos, 0);
  EXPECT_EQ(tokenizer.special().pad, 1);
  EXPECT_EQ(tokenizer.special().sep, 2);
  EXPECT_EQ(tokenizer.special().unk, 3);
  EXPECT_EQ(tokenizer.special().mask, 999);
  EXPECT_EQ(tokenizer.TokenToId("<mask>"), 999);
  EXPECT_EQ(tokenizer.TokenToId("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.IdToToken(2), "</s>");
  EXPECT_EQ(tokenizer.IdToToken(1000), std::nullopt);
  EXPECT_EQ(tokenizer.IdToToken(-1), std::nullopt);
}

TEST(Tokenizer, InvalidUtf8IsRefusedWithItsPosition) {
  const Tokenizer tokenizer = Roberta();
  for (const std::string text : {"ab\xff", "ab\xed\xa0\x80", "ab\xe6\x97"}) {
    const auto result = tokenizer.Encode(text, {});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().message(), "text is not valid UTF-8 at byte 2");
    EXPECT_EQ(tokenizer.EncodePair("fine", text, {}).status().message(),
              "text_pair is not valid UTF-8 at byte 2");
  }
}

TEST(Tokenizer, NulBytesAreText) {
  const Tokenizer tokenizer = Roberta();
  const std::string text("a\0b", 3);
  const auto result = tokenizer.Encode(text, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->encoding.ids.size(), 5u);
  EXPECT_EQ(tokenizer.Decode(result->encoding.ids, true).value(), text);
}

TEST(Tokenizer, UnknownIdsAreSkippedWhenDecoding) {
  const Tokenizer tokenizer = Roberta();
  const std::vector<int32_t> ids = {68, -1, 5000, 69};
  EXPECT_EQ(tokenizer.Decode(ids, true).value(), "ab");
  EXPECT_EQ(tokenizer.Decode({}, true).value(), "");
}

TEST(Tokenizer, LimitsAreChecked) {
  const Tokenizer tokenizer = Roberta();
  EncodeOptions options;
  options.max_length = 1;
  EXPECT_NE(
      tokenizer.Encode("a", options).status().message().find("less than the 2 special tokens"),
      std::string::npos);
  options.max_length = 3;
  EXPECT_NE(tokenizer.EncodePair("a", "b", options).status().message().find("the 4 special tokens"),
            std::string::npos);
  options.max_length = -1;
  EXPECT_FALSE(tokenizer.Encode("a", options).ok());
  options.max_length = 2;
  const auto empty = tokenizer.Encode("a b c", options);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->encoding.ids, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(empty->tokens_cut, 3);
  EXPECT_TRUE(empty->windows.empty());
  options.max_length = 12;
  options.windows = true;
  options.stride = 1;
  EXPECT_NE(tokenizer.EncodePair("a", "b", options).status().message().find("only_first"),
            std::string::npos);
}

TEST(Tokenizer, RoundTripsAnyText) {
  const Tokenizer tokenizer = Roberta();
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = static_cast<int>(random() % 60); i > 0; --i) {
      constexpr char32_t kStarts[] = {0, 0x80, 0x2000, 0x1f000}, kSizes[] = {128, 1920, 8192, 4096};
      const size_t kind = random() % 4;
      AppendUtf8(kStarts[kind] + static_cast<char32_t>(random()) % kSizes[kind], text);
    }
    EncodeOptions options;
    options.match_special_tokens = false;
    const auto result = tokenizer.Encode(text, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(tokenizer.Decode(result->encoding.ids, true).value(), text);
  }
}

TEST(Tokenizer, LongWordsAreNotQuadratic) {
  const Tokenizer tokenizer = Roberta();
  const auto result = tokenizer.Encode(std::string(1 << 20, 'a'), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->encoding.offsets[result->encoding.ids.size() - 2].end, 1 << 20);
}

TEST(Tokenizer, OneHandleManyThreads) {
  const Tokenizer tokenizer = Roberta();
  const nlohmann::json expected = ReadGolden("roberta_bpe");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        for (const auto& record : expected["special_texts"]) {
          EncodeOptions options;
          options.match_special_tokens = (round + t) % 2 == 0;
          const auto result = tokenizer.Encode(record["text"].get<std::string>(), options);
          const char* key =
              options.match_special_tokens ? "ids_specials_matched" : "ids_specials_as_text";
          if (!result.ok() || nlohmann::json(result->encoding.ids) != record[key]) ++wrong[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// Broken tokenizer.json text straight across the C boundary, past the checks in front of it:
// whatever comes, there is a handle that encodes or an error text.
TEST(TokenizerFfi, MutatedJsonNeverEscapes) {
  nlohmann::json document =
      nlohmann::json::parse(std::ifstream(TokenizerGolden("roberta_bpe") / "model/tokenizer.json"));
  // A few merges are enough, and mutations then hit the structure more often.
  nlohmann::json vocab;
  for (const auto& [token, id] : document["model"]["vocab"].items()) {
    if (id < 290 || id == 999) vocab[token] = id;
  }
  document["model"]["vocab"] = vocab;
  document["model"]["merges"].erase(document["model"]["merges"].begin() + 3,
                                    document["model"]["merges"].end());
  const std::string good = document.dump();
  constexpr std::string_view kBytes = "{}[]\",:0123456789-.etrufalsn\\ \xff";
  std::mt19937 random(99);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          bytes.erase(at, 1 + random() % 12);
          break;
        case 2:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 24));
          break;
        default:
          bytes.resize(at + 1);
          break;
      }
    }
    char text[256];
    LvtError error{text, sizeof text, 0, kLvtOk};
    LvtTokenizer* tokenizer = lvt_tokenizer_from_json({bytes.data(), bytes.size()}, &error);
    if (tokenizer == nullptr) {
      ++refused;
      EXPECT_NE(error.code, kLvtOk);
      EXPECT_GT(error.size, 0u);
      continue;
    }
    const LvtEncodeOptions options{.stop = nullptr,
                                   .first = nullptr,
                                   .piece_bytes = 4,
                                   .most_tokens = 0,
                                   .max_length = 8,
                                   .stride = 0,
                                   .keep_first = 0,
                                   .strategy = 0,
                                   .cut_left = 0,
                                   .add_special = 1,
                                   .match_special = 1,
                                   .byte_offsets = 0,
                                   .windows = 1,
                                   .lower_case = 0};
    const std::string input = "Hello <mask> w\u00f6rld </s> 12";
    LvtEncoding* encoding =
        lvt_encode(tokenizer, {input.data(), input.size()}, nullptr, &options, &error);
    if (encoding != nullptr) {
      EXPECT_GE(lvt_encoding_windows(encoding), 1u);
      lvt_encoding_free(encoding);
    }
    lvt_tokenizer_free(tokenizer);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace longview::models
