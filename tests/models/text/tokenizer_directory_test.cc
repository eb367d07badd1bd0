// Layouts and broken forms of tokenizer files.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "models/text/tokenizer.h"
#include "models/text/tokenizer_codec.h"
#include "tests/models/text/golden_file.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using nlohmann::json;

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

json ReadModelJson(const std::string& golden, const char* file) {
  return json::parse(ReadText(TokenizerGolden(golden) / "model" / file));
}

class TokenizerDirectory : public ::testing::Test {
 protected:
  void Copy(const std::string& golden, std::initializer_list<const char*> files) {
    for (const char* file : files) {
      directory_.Write(file, ReadText(TokenizerGolden(golden) / "model" / file));
    }
  }

  // Encodes every text of the golden case with the files written so far.
  void ExpectGolden(const std::string& golden) {
    const auto tokenizer = Tokenizer::Load(directory_.path());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const json expected = ReadGolden(golden);
    for (const char* list : {"texts", "special_texts"}) {
      for (const json& record : expected.value(list, json::array())) {
        const auto result = tokenizer->Encode(record["text"].get<std::string>(), {});
        ASSERT_TRUE(result.ok()) << result.status();
        const char* key = record.contains("ids") ? "ids" : "ids_specials_matched";
        EXPECT_EQ(json(result->encoding.ids), record[key]) << record["text"];
      }
    }
    for (const json& record : expected.value("pairs", json::array())) {
      const auto result =
          tokenizer->EncodePair(record["a"].get<std::string>(), record["b"].get<std::string>(), {});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(json(result->encoding.ids), record["ids"]);
      EXPECT_EQ(json(result->encoding.type_ids), record["type_ids"]);
    }
  }

  void ExpectRefused(const std::string& part) {
    const auto tokenizer = Tokenizer::Load(directory_.path());
    ASSERT_FALSE(tokenizer.ok()) << part;
    EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument) << tokenizer.status();
    EXPECT_NE(tokenizer.status().message().find(part), std::string::npos) << tokenizer.status();
  }

  // tokenizer.json of a golden case after an edit.
  void WriteEdited(const std::string& golden, const std::function<void(json&)>& edit) {
    json document = ReadModelJson(golden, "tokenizer.json");
    edit(document);
    directory_.Write("tokenizer.json", document.dump());
  }

  testing::TempDirectory directory_;
};

TEST_F(TokenizerDirectory, WithoutTokenizerIsNotFound) {
  EXPECT_EQ(Tokenizer::Load(directory_.path()).status().code(), absl::StatusCode::kNotFound);
  directory_.Write("tokenizer_config.json", "{}");
  EXPECT_EQ(Tokenizer::Load(directory_.path()).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TokenizerDirectory, StagesThatTheLibraryHas) {
  for (const char* type : {"Nmt", "ByteLevel", "NFKC", "StripAccents"}) {
    WriteEdited("roberta_bpe", [&](json& d) { d["normalizer"] = {{"type", type}}; });
    const auto tokenizer = Tokenizer::Load(directory_.path());
    EXPECT_TRUE(tokenizer.ok()) << type << ": " << tokenizer.status();
  }
  const json stages[] = {{{"type", "UnicodeScripts"}},
                         {{"type", "CharDelimiterSplit"}, {"delimiter", "-"}},
                         {{"type", "FixedLength"}, {"length", 3}}};
  for (const json& stage : stages) {
    WriteEdited("roberta_bpe", [&](json& d) { d["pre_tokenizer"] = stage; });
    const auto tokenizer = Tokenizer::Load(directory_.path());
    EXPECT_TRUE(tokenizer.ok()) << stage << ": " << tokenizer.status();
  }
}

// Trained with the sentencepiece package; ids of XLMRobertaTokenizerFast of transformers 4.57.
TEST_F(TokenizerDirectory, SentencePieceOfXlmRoberta) {
  Copy("xlmr_sentencepiece", {"sentencepiece.bpe.model", "config.json"});
  ExpectGolden("xlmr_sentencepiece");
  directory_.Write("tokenizer_config.json", R"({"tokenizer_class": "CamembertTokenizer"})");
  ExpectRefused("texts need a tokenizer.json: tokenizer_class \"CamembertTokenizer\"");
  directory_.Write("tokenizer_config.json", "{}");
  const std::string broken[] = {
      "\x0a\xff\xff",  // A piece of a length without an end.
      std::string("\x0a\x05\x0a\x02"
                  "a",
                  5),                                  // A piece that reaches beyond the file.
      std::string("\x0a\x03\x0a\x01\xff", 5),          // A piece that is no UTF-8.
      std::string("\x0a\x05\x15\x00\x00\xc0\x7f", 7),  // A score that is NaN.
      std::string("\x0b\x0c", 2),                      // A group.
      std::string("\x00", 1),                          // A member without a number.
      std::string(11, '\xff'),                         // A number of more than 64 bits.
  };
  for (const std::string& bytes : broken) {
    directory_.Write("sentencepiece.bpe.model", bytes);
    ExpectRefused("not a vocabulary of SentencePiece (" + std::to_string(bytes.size()) + " bytes)");
  }
}

TEST_F(TokenizerDirectory, VocabularyAndMergesAlone) {
  Copy("roberta_bpe", {"vocab.json", "merges.txt"});
  ExpectGolden("roberta_bpe");
  const auto tokenizer = Tokenizer::Load(directory_.path());
  EXPECT_EQ(tokenizer->special().mask, 999);
  EXPECT_EQ(tokenizer->model_max_length(), 0);
}

TEST_F(TokenizerDirectory, VocabularyAndMergesWithTheirSideFiles) {
  Copy("roberta_bpe",
       {"vocab.json", "merges.txt", "special_tokens_map.json", "tokenizer_config.json"});
  ExpectGolden("roberta_bpe");
}

TEST_F(TokenizerDirectory, MergesWithoutVersionLineAndWithWindowsLineEnds) {
  Copy("roberta_bpe", {"vocab.json"});
  std::string merges = ReadText(TokenizerGolden("roberta_bpe") / "model/merges.txt");
  merges.erase(0, merges.find('\n') + 1);
  directory_.Write("merges.txt", merges);
  ExpectGolden("roberta_bpe");
  std::string windows;
  for (char c : merges) windows += c == '\n' ? "\r\n" : std::string(1, c);
  windows.resize(windows.size() - 2);
  directory_.Write("merges.txt", windows);
  ExpectGolden("roberta_bpe");
}

TEST_F(TokenizerDirectory, WordPieceVocabularyAlone) {
  Copy("bert_wordpiece_uncased", {"vocab.txt"});
  ExpectGolden("bert_wordpiece_uncased");
}

TEST_F(TokenizerDirectory, WordPieceVocabularyWithConfig) {
  Copy("bert_wordpiece_cased", {"vocab.txt", "tokenizer_config.json"});
  ExpectGolden("bert_wordpiece_cased");
}

TEST_F(TokenizerDirectory, OldFilesWithoutModelTypeAndWithMergeStrings) {
  WriteEdited("roberta_bpe", [](json& document) {
    json& model = document["model"];
    for (const char* key : {"type", "byte_fallback", "ignore_merges"}) model.erase(key);
    for (json& merge : model["merges"]) {
      merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    }
    document["pre_tokenizer"].erase("use_regex");
  });
  ExpectGolden("roberta_bpe");
}

TEST_F(TokenizerDirectory, StoredTruncationAndPaddingDoNotCount) {
  WriteEdited("roberta_bpe", [](json& document) {
    document["truncation"] = {
        {"direction", "Right"}, {"max_length", 4}, {"strategy", "LongestFirst"}, {"stride", 0}};
    document["padding"] = {{"strategy", {{"Fixed", 64}}},
                           {"direction", "Right"},
                           {"pad_to_multiple_of", nullptr},
                           {"pad_id", 1},
                           {"pad_type_id", 0},
                           {"pad_token", "<pad>"}};
  });
  ExpectGolden("roberta_bpe");
}

TEST_F(TokenizerDirectory, FlagsOfTheMaskToken) {
  Copy("roberta_bpe", {"vocab.json", "merges.txt"});
  directory_.Write("special_tokens_map.json",
                   R"({"mask_token": {"content": "<mask>", "lstrip": false, "rstrip": false,
                       "single_word": false, "normalized": false}})");
  const auto tokenizer = Tokenizer::Load(directory_.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->Encode("a <mask>", {})->encoding.ids,
            (std::vector<int32_t>{0, 68, 224, 999, 2}));
}

TEST_F(TokenizerDirectory, AddedTokensFollowTheVocabulary) {
  Copy("roberta_bpe", {"vocab.json", "merges.txt"});
  directory_.Write("added_tokens.json", R"({"<doc-sep>": 1000, "<two>": 1001})");
  directory_.Write("special_tokens_map.json", R"({"additional_special_tokens": ["<doc-sep>"]})");
  const auto tokenizer = Tokenizer::Load(directory_.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->Encode("a<doc-sep><two>", {})->encoding.ids,
            (std::vector<int32_t>{0, 68, 1000, 1001, 2}));
  EXPECT_EQ(tokenizer->vocab_size(), 1002);
  EXPECT_EQ(tokenizer->max_id(), 1001);
}

TEST_F(TokenizerDirectory, NewerConfigsListTheirTokensById) {
  Copy("roberta_bpe", {"tokenizer.json"});
  directory_.Write("tokenizer_config.json",
                   R"({"model_max_length": 1000000000000000019884624838656,
                       "truncation_side": "left",
                       "added_tokens_decoder": {"1000": {"content": "<x>", "special": false}},
                       "pad_token": "<pad>"})");
  const auto tokenizer = Tokenizer::Load(directory_.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->TokenToId("<x>"), 1000);
  EXPECT_EQ(tokenizer->model_max_length(), 0);
  EXPECT_TRUE(tokenizer->cuts_left());
}

TEST_F(TokenizerDirectory, ConfigOverridesThePrefixSpace) {
  Copy("roberta_bpe", {"tokenizer.json"});
  directory_.Write("tokenizer_config.json", R"({"add_prefix_space": true})");
  const auto tokenizer = Tokenizer::Load(directory_.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->Encode("b", {})->encoding.ids, tokenizer->Encode(" b", {})->encoding.ids);
}

struct BrokenCase {
  const char* name;
  std::function<void(json&)> edit;
  const char* message;
};

void PrintTo(const BrokenCase& broken, std::ostream* out) { *out << broken.name; }

class BrokenTokenizerJson : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenTokenizerJson, IsRefusedByName) {
  const testing::TempDirectory directory;
  json document = ReadModelJson("roberta_bpe", "tokenizer.json");
  GetParam().edit(document);
  directory.Write("tokenizer.json", document.dump());
  const auto tokenizer = Tokenizer::Load(directory.path());
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument) << tokenizer.status();
  EXPECT_NE(tokenizer.status().message().find(GetParam().message), std::string::npos)
      << tokenizer.status();
}

const BrokenCase kBroken[] = {
    {"NoModel", [](json& d) { d.erase("model"); }, "\"model\""},
    {"UnknownTopLevelKey", [](json& d) { d["normaliser"] = 1; }, "unknown key \"normaliser\""},
    {"OtherVersion", [](json& d) { d["version"] = "2.0"; }, "\"version\""},
    {"UnknownNormalizer",
     [](json& d) {
       d["normalizer"] = {{"type", "Uppercase"}};
     },
     "\"Uppercase\""},
    {"NormalizerWithoutType", [](json& d) { d["normalizer"] = json::object(); },
     "normalizer: \"type\""},
    {"UnknownNormalizerInASequence",
     [](json& d) {
       d["normalizer"] = {{"type", "Sequence"},
                          {"normalizers", {{{"type", "NFC"}}, {{"type", "Uppercase"}}}}};
     },
     "normalizer[1]: \"type\""},
    {"UnknownPreTokenizer", [](json& d) { d["pre_tokenizer"]["type"] = "Scripts"; }, "\"Scripts\""},
    {"UnknownDecoder", [](json& d) { d["decoder"]["type"] = "CTC"; }, "\"CTC\""},
    {"UnknownPostProcessor", [](json& d) { d["post_processor"]["type"] = "Roberta"; },
     "\"Roberta\""},
    // Without its flags the crate would read it as BertProcessing.
    {"RobertaWithoutTrimOffsets", [](json& d) { d["post_processor"].erase("trim_offsets"); },
     "\"trim_offsets\""},
    {"RobertaWithoutPrefixSpace", [](json& d) { d["post_processor"].erase("add_prefix_space"); },
     "\"add_prefix_space\""},
    {"BertWithRobertaFields", [](json& d) { d["post_processor"]["type"] = "BertProcessing"; },
     "unknown key"},
    {"TemplateTokenWithAnotherId",
     [](json& d) {
       d["post_processor"]["sep"] = {"</s>", 7};
     },
     "gives token \"</s>\" the id 7"},
    {"TemplateTokenUnknown",
     [](json& d) {
       d["post_processor"]["sep"] = {"</sep>", 7};
     },
     "lacks it"},
    {"SepIsAString", [](json& d) { d["post_processor"]["sep"] = "</s>"; }, "[token, id]"},
    {"Dropout", [](json& d) { d["model"]["dropout"] = 0.1; }, "\"dropout\""},
    {"ByteFallback", [](json& d) { d["model"]["byte_fallback"] = 1; }, "\"byte_fallback\""},
    {"UnknownModel", [](json& d) { d["model"]["type"] = "Bigram"; }, "\"Bigram\""},
    {"UnigramWithBytes",
     [](json& d) {
       d["model"] = {{"type", "Unigram"},
                     {"unk_id", 0},
                     {"byte_fallback", "yes"},
                     {"vocab", json::array({json::array({"a", -1.0})})}};
     },
     "\"byte_fallback\""},
    {"UnigramWithUnknownBeyondItsPieces",
     [](json& d) {
       d["model"] = {{"unk_id", 1}, {"vocab", json::array({json::array({"a", -1.0})})}};
     },
     "\"unk_id\""},
    {"UnigramWithoutScores",
     [](json& d) {
       d["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", {"a", "b"}}};
     },
     "[piece, score]"},
    {"UnknownModelKey", [](json& d) { d["model"]["drop_out"] = 0.1; }, "unknown key \"drop_out\""},
    {"VocabularyIsAList", [](json& d) { d["model"]["vocab"] = json::array(); }, "\"vocab\""},
    {"TwoTokensWithOneId", [](json& d) { d["model"]["vocab"]["again"] = 5; }, "the same id 5"},
    {"NegativeId", [](json& d) { d["model"]["vocab"]["x"] = -1; }, "found -1"},
    {"IdOver31Bits", [](json& d) { d["model"]["vocab"]["x"] = 2147483647; }, "found 2147483647"},
    {"IdIsAString", [](json& d) { d["model"]["vocab"]["x"] = "7"; }, "found \"7\""},
    {"MergeOfUnknownTokens",
     [](json& d) {
       d["model"]["merges"].push_back({"qqq", "zzz"});
     },
     "qqq"},
    {"MergeOfOneToken", [](json& d) { d["model"]["merges"].push_back(json::array({"a"})); },
     "tokenizer.json"},
    {"AddedTokenWithAnotherId",
     [](json& d) {
       json token = d["added_tokens"][0];
       token["content"] = "<new>";
       token["id"] = 1007;
       d["added_tokens"].push_back(token);
     },
     "gives token \"<new>\" the id 1007, the vocabulary gives it 1000"},
    {"AddedTokenWithoutContent", [](json& d) { d["added_tokens"][0].erase("content"); },
     "\"content\""},
};

INSTANTIATE_TEST_SUITE_P(All, BrokenTokenizerJson, ::testing::ValuesIn(kBroken),
                         [](const auto& info) { return info.param.name; });

// Gemma's tokenizer writes characters that its vocabulary lacks as bytes.
TEST_F(TokenizerDirectory, BytesOfUnknownCharacters) {
  json vocab = {{"<unk>", 0}, {"a", 1}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocab[name] = byte + 2;
  }
  directory_.Write(
      "tokenizer.json",
      json{{"version", "1.0"},
           {"added_tokens", json::array()},
           {"decoder",
            {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}},
           {"model",
            {{"type", "BPE"},
             {"unk_token", "<unk>"},
             {"byte_fallback", true},
             {"vocab", vocab},
             {"merges", json::array()}}}}
          .dump());
  auto tokenizer = Tokenizer::Load(directory_.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto result = tokenizer->Encode("a\u00e9", {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->encoding.ids, (std::vector<int32_t>{1, 0xc3 + 2, 0xa9 + 2}));
  EXPECT_EQ(*tokenizer->Decode(result->encoding.ids, false), "a\u00e9");
  const TokenizerCodec codec(*std::move(tokenizer));
  EXPECT_EQ(codec.Bytes(0xc3 + 2), "\xc3");
  EXPECT_EQ(codec.Bytes(1), "a");
}

TEST_F(TokenizerDirectory, BrokenFilesAreNamed) {
  Copy("roberta_bpe", {"vocab.json"});
  ExpectRefused("merges.txt");
  directory_.Write("merges.txt", "#version: 0.2\nonlyone\n");
  ExpectRefused("merges.txt: line 2");
  directory_.Write("merges.txt", "a b c\n");
  ExpectRefused("merges.txt: line 1");
  directory_.Write("merges.txt", "");
  directory_.Write("tokenizer_config.json", R"({"tokenizer_class": "XLNetTokenizer"})");
  ExpectRefused("XLNetTokenizer");
  directory_.Write("tokenizer_config.json", R"({"tokenizer_class": )");
  ExpectRefused("tokenizer_config.json");
  directory_.Write("tokenizer_config.json", R"({"truncation_side": "middle"})");
  ExpectRefused("\"truncation_side\"");
  directory_.Write("tokenizer_config.json", R"({"mask_token": 7})");
  ExpectRefused("mask_token");
  directory_.Write("tokenizer_config.json", "{}");
  directory_.Write("added_tokens.json", R"({"<x>": 5000})");
  ExpectRefused("the id 5000");
  directory_.Write("added_tokens.json", "{}");
  directory_.Write("vocab.json", R"({"a": 0, "a": 1})");
  ExpectRefused("twice");
  directory_.Write("vocab.json", R"({"a": 0})");
  ExpectRefused("lacks \"<s>\"");
  directory_.Write("tokenizer.json", "");
  ExpectRefused("tokenizer.json: not valid JSON");
  directory_.Write("tokenizer.json", "version https://git-lfs.github.com/spec/v1\n");
  ExpectRefused("git lfs pull");
}

// Broken files of every kind: the answer is a tokenizer or an error that names a file.
TEST_F(TokenizerDirectory, MutatedFilesAreLoadedOrRefused) {
  const char* const files[] = {"tokenizer.json", "tokenizer_config.json",
                               "special_tokens_map.json"};
  Copy("roberta_bpe", {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"});
  constexpr std::string_view kBytes = "{}[]\",:0123456789-.etrufalsn\\ \xff";
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    const char* file = files[round % 3];
    const std::string good = ReadText(TokenizerGolden("roberta_bpe") / "model" / file);
    std::string bytes = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const size_t at = random() % bytes.size();
      if (random() % 3 == 0) {
        bytes.erase(at, 1 + random() % 40);
      } else {
        bytes[at] = kBytes[random() % kBytes.size()];
      }
    }
    directory_.Write(file, bytes);
    const auto tokenizer = Tokenizer::Load(directory_.path());
    if (tokenizer.ok()) {
      EXPECT_TRUE(tokenizer->Encode("Hello <mask> </s>", {}).ok());
    } else {
      ++refused;
      EXPECT_FALSE(tokenizer.status().message().empty());
    }
    directory_.Write(file, good);
  }
  EXPECT_GT(refused, 200);
}

TEST_F(TokenizerDirectory, WordPieceWithoutItsTemplateTokens) {
  directory_.Write("vocab.txt", "[UNK]\n[CLS]\na\n");
  ExpectRefused("lacks \"[SEP]\"");
}

}  // namespace
}  // namespace longview::models
