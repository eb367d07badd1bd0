// Long texts are tokenised in pieces; the result is that of the whole.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/stop_scope.h"
#include "models/text/byte_codec.h"
#include "models/text/tokenizer_codec.h"
#include "models/text/tokenizer_directory.h"
#include "models/text/tokenizer_ffi/tokenizer_ffi.h"
#include "nlohmann/json.hpp"
#include "tests/models/text/golden_file.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr uint32_t kWhole = 1 << 24;

struct Result {
  std::string error;
  std::vector<uint32_t> ids, type_ids, offsets;
  std::vector<int32_t> words;
  std::vector<int8_t> sequences;
  std::vector<uint8_t> special;
  size_t tokens = 0, tokens_cut = 0;
  bool counted = true;
  bool operator==(const Result&) const = default;
};

// The C interface, where the size of the pieces is an option.
class Pieces {
 public:
  explicit Pieces(const std::string& directory) {
    const absl::StatusOr<TokenizerSource> source = ReadTokenizerDirectory(directory);
    EXPECT_TRUE(source.ok()) << source.status();
    std::array<char, 256> text{};
    LvtError error{text.data(), text.size(), 0, kLvtOk};
    handle_.reset(lvt_tokenizer_from_json({source->json.data(), source->json.size()}, &error));
    EXPECT_NE(handle_, nullptr) << text.data();
  }

  Result Encode(const std::string& text, const std::string* pair,
                const LvtEncodeOptions& options) const {
    std::array<char, 256> message{};
    LvtError error{message.data(), message.size(), 0, kLvtOk};
    const LvtText second = pair == nullptr ? LvtText{} : LvtText{pair->data(), pair->size()};
    LvtEncoding* encoding = lvt_encode(handle_.get(), {text.data(), text.size()},
                                       pair == nullptr ? nullptr : &second, &options, &error);
    Result result;
    result.error = std::string(message.data(), error.size);
    if (encoding == nullptr) return result;
    const LvtWindow window = lvt_encoding_window(encoding, 0);
    const size_t n = window.length;
    result.ids.assign(window.ids, window.ids + n);
    result.type_ids.assign(window.type_ids, window.type_ids + n);
    result.offsets.assign(window.offsets, window.offsets + 2 * n);
    result.words.assign(window.words, window.words + n);
    result.sequences.assign(window.sequences, window.sequences + n);
    result.special.assign(window.special, window.special + n);
    result.tokens = lvt_encoding_tokens(encoding);
    result.tokens_cut = lvt_encoding_tokens_cut(encoding);
    result.counted = lvt_encoding_counted(encoding) != 0;
    lvt_encoding_free(encoding);
    return result;
  }

 private:
  struct Free {
    void operator()(LvtTokenizer* tokenizer) const { lvt_tokenizer_free(tokenizer); }
  };
  std::unique_ptr<LvtTokenizer, Free> handle_;
};

LvtEncodeOptions Options(uint32_t piece_bytes) {
  return {.stop = nullptr,
          .first = nullptr,
          .piece_bytes = piece_bytes,
          .most_tokens = 0,
          .max_length = 0,
          .stride = 0,
          .keep_first = 0,
          .strategy = 0,
          .cut_left = 0,
          .add_special = 1,
          .match_special = 1,
          .byte_offsets = 0,
          .windows = 0,
          .lower_case = 0};
}

Pieces Golden(const std::string& name) { return Pieces(TokenizerGolden(name) / "model"); }

json RobertaFile() {
  std::ifstream file(TokenizerGolden("roberta_bpe") / "model" / "tokenizer.json");
  return json::parse(file);
}

Pieces FromFile(const json& document) {
  testing::TempDirectory directory;
  directory.Write("tokenizer.json", document.dump());
  return Pieces(directory.path());
}

json AddedToken(int id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", false}};
}

// Words as long as a text, of which the best path through the pieces is taken.
json UnigramFile() {
  json vocab = json::array({json::array({"<unk>", 0.0})});
  for (const char* piece :
       {"▁",    "the", "ing", "▁the", "日本", "日本語", "本語", "한국", "。", "ab",  "ba",
        "abab", "😀",   "12",  "23",   "345",  "word",   "WO",   "RD",   "ﬁ",  "don", "▁don't",
        "\'t",  "a",   "e",   "é",    "x1",   "zz",     "--",   "---",  "-"}) {
    vocab.push_back({piece, -2.5 - 0.37 * static_cast<double>(vocab.size() % 7)});
  }
  const auto squeezed = [](const char* content) {
    return json{{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", content}};
  };
  return {{"version", "1.0"},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers", {{{"type", "Nmt"}}, {{"type", "NFKC"}}, squeezed(" ")}}}},
          {"pre_tokenizer",
           {{"type", "Metaspace"},
            {"replacement", "▁"},
            {"prepend_scheme", "always"},
            {"split", true}}},
          {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}};
}

// Words, runs, and what tokenizers treat in ways of their own.
std::string RandomText(std::mt19937& random, size_t bytes) {
  static const std::vector<std::string> kParts = {"a",           "the ",
                                                  "return ",     "don't ",
                                                  "'s",          "'",
                                                  " ",           "  ",
                                                  "\n",          "\t",
                                                  "\r\n",        "12345",
                                                  "7",           "(",
                                                  ");",          "!?",
                                                  "_x",          "é",
                                                  "e\xCC\x81",   "日本語",
                                                  "。",          "<mask>",
                                                  "</s>",        " <mask> ",
                                                  "<ma",         "[MASK]",
                                                  "word",        "WORD",
                                                  "\xC2\xA0",    "\xE3\x80\x80",
                                                  "😀",           "\xE2\x80\x8D",
                                                  "ß",           "İ",
                                                  "-----------", "[SEP]",
                                                  "x1",          "\x01",
                                                  "ﬁ",           "한국어",
                                                  "zz ",         "<two words>"};
  std::string text;
  while (text.size() < bytes) {
    const std::string& part = kParts[random() % kParts.size()];
    const unsigned kind = random() % 40;
    const unsigned times = kind == 0 ? 200 : kind < 4 ? 30 : 1;
    for (unsigned i = 0; i < times; ++i) text += part;
  }
  return text;
}

std::string WithoutSpaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; });
  return text;
}

// Texts that cannot be cut are refused, never answered otherwise. Returns whether it was answered.
bool Compare(const Pieces& tokenizer, const std::string& text, const std::string* pair,
             LvtEncodeOptions options) {
  const uint32_t piece = options.piece_bytes;
  const Result piecewise = tokenizer.Encode(text, pair, options);
  options.piece_bytes = kWhole;
  const Result whole = tokenizer.Encode(text, pair, options);
  if (piecewise.error.find("no place to split it") != std::string::npos) return false;
  EXPECT_EQ(piecewise.error, whole.error);
  EXPECT_EQ(piecewise.ids, whole.ids) << text;
  EXPECT_EQ(piecewise.type_ids, whole.type_ids) << text;
  EXPECT_EQ(piecewise.words, whole.words) << text;
  EXPECT_EQ(piecewise.offsets, whole.offsets) << text;
  EXPECT_EQ(piecewise.sequences, whole.sequences) << text;
  EXPECT_EQ(piecewise.special, whole.special) << text;
  if (piecewise.counted) {
    EXPECT_EQ(piecewise.tokens, whole.tokens) << text;
    EXPECT_EQ(piecewise.tokens_cut, whole.tokens_cut) << text;
  } else {
    EXPECT_LE(piecewise.tokens, whole.tokens) << text;
    EXPECT_GT(piecewise.tokens, options.max_length) << text;
    EXPECT_GT(text.size() + (pair == nullptr ? 0 : pair->size()), size_t{4} * piece) << text;
  }
  return true;
}

int Answered(const Pieces& tokenizer, bool spaces, int rounds, int seed) {
  std::mt19937 random(seed), fronts(seed + 100);
  int answered = 0;
  for (int round = 0; round < rounds; ++round) {
    LvtEncodeOptions options = Options(64u << random() % 3);
    options.match_special = random() % 4 != 0;
    options.byte_offsets = random() % 2;
    if (random() % 2 != 0) options.max_length = 8 + random() % 300;
    options.cut_left = random() % 2;
    if (fronts() % 2 != 0) options.keep_first = fronts() % 40;
    options.strategy = static_cast<uint8_t>(random() % 3);
    std::string text = RandomText(random, 300 + random() % 3000);
    std::string pair = RandomText(random, random() % 2000);
    if (!spaces) text = WithoutSpaces(text), pair = WithoutSpaces(pair);
    answered += Compare(tokenizer, text, round % 3 == 0 ? &pair : nullptr, options) ? 1 : 0;
    if (::testing::Test::HasFailure()) return answered;
  }
  return answered;
}

TEST(LongText, ByteLevelPairMergesInPieces) {
  const Pieces tokenizer = Golden("roberta_bpe");
  for (const int seed : {1, 101, 201, 301}) {
    EXPECT_GT(Answered(tokenizer, true, 200, seed), 190) << seed;
    EXPECT_GT(Answered(tokenizer, false, 400, seed + 1), 390) << seed;
  }
}

// A word may go on behind what ends in an apostrophe and letters: 't ends in "don'tdon't".
TEST(LongText, WordsWithApostrophes) {
  const Pieces tokenizer = Golden("roberta_bpe");
  for (const std::string front : {"word", "!", "'", "7", "é", "  ", "!\""}) {
    for (const std::string part : {"don't", "'s", "'ll", "!'re", "''ve", "'d'", "x'", "it'S"}) {
      for (size_t shift = 0; shift < 70; ++shift) {
        std::string text(shift, 'a');
        while (text.size() < 300 + shift) text += front;
        while (text.size() < 600 + shift) text += part;
        EXPECT_TRUE(Compare(tokenizer, text, nullptr, Options(64))) << front << part << shift;
      }
    }
  }
}

// White space belongs to a mask far behind, also where only the first tokens are wanted.
TEST(LongText, SpacesThatAMaskTakes) {
  json unigrams = UnigramFile();
  unigrams["normalizer"]["normalizers"].erase(2);
  unigrams["pre_tokenizer"] = {{"type", "Split"},
                               {"pattern", {{"String", "_"}}},
                               {"behavior", "Isolated"},
                               {"invert", false}};
  unigrams["model"]["vocab"].push_back({" ", -3.0});
  unigrams["added_tokens"] = json::array({AddedToken(1000, "<mask>")});
  unigrams["added_tokens"][0]["lstrip"] = true;
  const std::array<Pieces, 2> tokenizers = {Golden("roberta_bpe"), FromFile(unigrams)};
  for (const std::string part : {" ", "  \n", "\xE3\x80\x80"}) {
    for (size_t bytes = 100; bytes < 1000; bytes += 37) {
      for (const Pieces& tokenizer : tokenizers) {
        std::string text = "so";
        while (text.size() < bytes) text += part;
        text += "<mask>";
        while (text.size() < 2000) text += " the";
        for (const uint32_t most : {5, 12, 30, 90}) {
          LvtEncodeOptions options = Options(64);
          options.max_length = most;
          EXPECT_TRUE(Compare(tokenizer, text, nullptr, options)) << bytes << part << most;
        }
      }
    }
  }
}

TEST(LongText, RunsOfOneCharacter) {
  const Pieces tokenizer = Golden("roberta_bpe");
  std::mt19937 random(3);
  for (const std::string part : {"a", " ", "\n", "-", "0", "é", "日", "ab", "'", "aab", " \n", "=-",
                                 "the", "ing", "in", "'s", "😀"}) {
    std::string text;
    while (text.size() < 4000 + random() % 7) text += part;
    for (const std::string tail : {"", "x", " x", " <mask>", "'s"}) {
      // White space belongs to the mask behind it: that is as wide as it is.
      const bool swallowed = text.find_first_not_of(" \n") == text.npos && tail == " <mask>";
      EXPECT_EQ(Compare(tokenizer, "so " + text + tail, nullptr, Options(128)), !swallowed)
          << part << tail;
    }
  }
}

TEST(LongText, AddedTokensThatTakeSpacesOrHoldThem) {
  json document = RobertaFile();
  json right = AddedToken(1000, "word"), spaced = AddedToken(1001, "<two words>"),
       single = AddedToken(1002, "x1");
  right["rstrip"] = true;
  single["single_word"] = true;
  for (const json& token : {right, spaced, single}) document["added_tokens"].push_back(token);
  const Pieces tokenizer = FromFile(document);
  for (const int seed : {4, 104, 204, 304}) {
    EXPECT_GT(Answered(tokenizer, true, 200, seed), 190) << seed;
    EXPECT_GT(Answered(tokenizer, false, 400, seed + 1), 380) << seed;
  }
}

TEST(LongText, SpacesPutInFront) {
  json document = RobertaFile();
  document["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_GT(Answered(FromFile(document), true, 300, 6), 150);
}

TEST(LongText, WordPieces) {
  for (const std::string name : {"bert_wordpiece_cased", "bert_wordpiece_uncased"}) {
    const Pieces tokenizer = Golden(name);
    EXPECT_GT(Answered(tokenizer, true, 300, 7), 250) << name;
  }
}

TEST(LongText, WordsOfVocabularies) {
  testing::TempDirectory directory;
  directory.Write("vocab.json", R"({"the": 1, "return": 2, "don": 3, "word": 4, "a": 5})");
  directory.Write("tokenizer_config.json", R"({"tokenizer_class": "LRAWordTokenizer"})");
  EXPECT_GT(Answered(Pieces(directory.path()), true, 200, 8), 150);
}

// A text without known cuts is read whole as far as that is affordable, then refused.
TEST(LongText, UnknownStagesAreNotCut) {
  json document = RobertaFile();
  document["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"Regex", "a.*b"}}}, {"content", "c"}};
  const Pieces tokenizer = FromFile(document);
  EXPECT_EQ(tokenizer.Encode(std::string(1024, 'x'), nullptr, Options(64)).error, "");
  EXPECT_EQ(tokenizer.Encode(std::string(1025, 'x'), nullptr, Options(64)).error,
            "text has no place to split it within 1024 bytes; send it in parts");
  LvtEncodeOptions options = Options(64);
  options.max_length = 20;
  EXPECT_NE(tokenizer.Encode(std::string(1025, 'x'), nullptr, options).error, "");
}

TEST(LongText, PiecesOfUnigrams) {
  json document = UnigramFile();
  EXPECT_GT(Answered(FromFile(document), true, 300, 9), 250);
  json& steps = document["normalizer"]["normalizers"];
  steps[2]["content"] = "▁";
  steps.insert(steps.begin() + 2,
               json{{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  EXPECT_GT(Answered(FromFile(document), true, 300, 10), 250);
}

// The first tokens are known, the last ones and their number only from the whole text.
TEST(LongText, BeginningsOfTextsThatCannotBeCut) {
  std::mt19937 random(11);
  json merges = RobertaFile();
  merges["normalizer"] = {{"type", "Prepend"}, {"prepend", "x"}};
  for (const json& document : {UnigramFile(), merges}) {
    const Pieces tokenizer = FromFile(document);
    for (int round = 0; round < 60; ++round) {
      LvtEncodeOptions options = Options(64);
      options.max_length = 4 + random() % 40;
      options.strategy = static_cast<uint8_t>(round % 2);
      const std::string text = WithoutSpaces(RandomText(random, 2000 + random() % 9000));
      const std::string pair = RandomText(random, 20);
      options.cut_left = 0;
      EXPECT_TRUE(Compare(tokenizer, text, round % 3 == 0 ? &pair : nullptr, options));
      options.cut_left = 1;
      if (text.size() > 4000) Compare(tokenizer, text, nullptr, options);
    }
    // Runs whose length decides about every token.
    for (const std::string run : {"ab", "ba", "-", "日本"}) {
      std::string text;
      while (text.size() < 5000) text += run;
      LvtEncodeOptions options = Options(64);
      options.max_length = 20;
      EXPECT_TRUE(Compare(tokenizer, text, nullptr, options)) << run;
      EXPECT_TRUE(Compare(tokenizer, text + "a", nullptr, options)) << run;
    }
  }
}

TEST(LongText, WordPiecesWithoutAsciiOrWords) {
  std::mt19937 random(12);
  for (const std::string name : {"bert_wordpiece_cased", "bert_wordpiece_uncased"}) {
    const Pieces tokenizer = Golden(name);
    for (const std::vector<std::string>& parts :
         {std::vector<std::string>{"上", "海", "東", "京", "。", "，"},
          {"😀", "🚀", " ", "\n", "é"},
          {"\n", "\r\n", " ", "\t", "\xE3\x80\x80"},
          {"！", "日", "a", "\xC2\xA0", "e\xCC\x81"}}) {
      std::string text;
      while (text.size() < 9000) text += parts[random() % parts.size()];
      LvtEncodeOptions options = Options(64);
      EXPECT_TRUE(Compare(tokenizer, text, nullptr, options)) << name;
      options.max_length = 30;
      EXPECT_TRUE(Compare(tokenizer, text, nullptr, options)) << name;
      options.cut_left = 1;
      EXPECT_TRUE(Compare(tokenizer, text, nullptr, options)) << name;
    }
  }
}

TEST(LongText, FirstTokensOfAHundredMegabytes) {
  const absl::StatusOr<Tokenizer> tokenizer =
      Tokenizer::Load(TokenizerGolden("bert_wordpiece_cased") / "model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto read = [&](size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += "some words, 上海北京大阪 and 你好世界。";
    const auto start = std::chrono::steady_clock::now();
    const auto result = tokenizer->Encode(text, {.max_length = 512});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_TRUE(result.ok() && result->encoding.ids.size() == 512) << result.status();
    std::printf("first 512 tokens of %zu bytes: %.3f s\n", bytes, took.count());
    return *result;
  };
  const EncodeResult whole = read(4'000'000);
  EXPECT_TRUE(whole.counted);
  EXPECT_GT(whole.tokens_cut, 500'000);
  const EncodeResult beginning = read(100'000'000);
  EXPECT_FALSE(beginning.counted);
  EXPECT_LT(beginning.tokens_cut, 20'000);
  EXPECT_EQ(beginning.encoding.ids, whole.encoding.ids);
}

TEST(LongText, TooManyTokensAreCountedButNotKept) {
  const Pieces tokenizer = Golden("roberta_bpe");
  std::string text;
  while (text.size() < 3000) text += "some words ";
  LvtEncodeOptions options = Options(64);
  const size_t tokens = tokenizer.Encode(text, nullptr, options).tokens;
  options.most_tokens = static_cast<uint32_t>(tokens);
  EXPECT_EQ(tokenizer.Encode(text, nullptr, options).ids.size(), tokens);
  --options.most_tokens;
  const Result over = tokenizer.Encode(text, nullptr, options);
  EXPECT_TRUE(over.counted);
  EXPECT_EQ(over.tokens, tokens);
  EXPECT_TRUE(over.ids.empty());
  // Very long texts are tokenised only until there are clearly too many tokens.
  while (text.size() < 30000) text += text;
  const Result more = tokenizer.Encode(text, nullptr, options);
  EXPECT_FALSE(more.counted);
  EXPECT_GT(more.tokens, options.most_tokens);
  EXPECT_TRUE(more.ids.empty());
}

TEST(LongText, TokenizerStopsWithItsScope) {
  const absl::StatusOr<Tokenizer> tokenizer =
      Tokenizer::Load(TokenizerGolden("roberta_bpe") / "model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::string text;
  while (text.size() < 1 << 20) text += "some words and ";
  std::atomic<bool> stop = false;
  const StopScope scope(&stop);
  EXPECT_TRUE(tokenizer->Encode(text, {}).ok());
  stop = true;
  EXPECT_EQ(tokenizer->Encode(text, {}).status().code(), absl::StatusCode::kCancelled);
}

TEST(LongText, StopsWhenNobodyWaits) {
  const Pieces tokenizer = Golden("roberta_bpe");
  const std::atomic<bool> stop = true;
  LvtEncodeOptions options = Options(64);
  options.stop = &stop;
  EXPECT_EQ(tokenizer.Encode(std::string(3000, 'x'), nullptr, options).error,
            "nobody waits for it any more");
}

TEST(LongText, BeginningEndsWithACharacter) {
  EXPECT_EQ(CountedBeginning("short"), "short");
  std::string text = "x";
  while (text.size() <= size_t{4} << 20) text += "日";
  const std::string_view beginning = CountedBeginning(text);
  EXPECT_EQ(beginning.size() % 3, 1u);
  EXPECT_LT((size_t{4} << 20) - beginning.size(), 3u);
}

TEST(LongText, CodecsKeepTheBeginning) {
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Load(TokenizerGolden("roberta_bpe") / "model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const TokenizerCodec words(*std::move(tokenizer));
  const auto bytes = ByteCodec::Create(nullptr, "", 256, "config.json");
  ASSERT_TRUE(bytes.ok());
  const std::string text = "a text of some tokens, enough of them to be cut";
  for (const TextCodec* codec :
       {static_cast<const TextCodec*>(&words), static_cast<const TextCodec*>(bytes->get())}) {
    const std::vector<int32_t> all = *codec->Encode(text);
    const auto cut = EncodeFirst(*codec, text, {.keep = 5, .cut = true});
    ASSERT_TRUE(cut.ok());
    EXPECT_EQ(cut->ids, std::vector<int32_t>(all.begin(), all.begin() + 5));
    EXPECT_EQ(cut->tokens, std::ssize(all));
    const auto over = EncodeFirst(*codec, text, {.keep = 5, .cut = false});
    ASSERT_TRUE(over.ok());
    EXPECT_TRUE(over->ids.empty());
    EXPECT_EQ(over->tokens, std::ssize(all));
    EXPECT_EQ(EncodeFirst(*codec, text, {.keep = 500})->ids, all);
  }
}

}  // namespace
}  // namespace longview::models
