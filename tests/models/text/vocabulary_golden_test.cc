// Byte and symbol vocabularies against golden/tokenizers.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/text/byte_vocabulary.h"
#include "models/text/dictionary.h"
#include "models/text/dictionary_codec.h"
#include "models/text/token_vocabulary.h"
#include "tests/models/text/golden_file.h"

namespace longview::models {
namespace {

using nlohmann::json;

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(ByteVocabulary, Golden) {
  const json expected = ReadGolden("lra");
  ASSERT_FALSE(expected["byte"].empty());
  for (const json& record : expected["byte"]) {
    const int max_length = record.value("max_length", 0);
    std::vector<int32_t> ids = EncodeBytes(record["text"].get<std::string>(), max_length);
    if (record.contains("decoded")) {
      EXPECT_EQ(DecodeBytes(ids).value(), record["decoded"]);
    }
    const bool padded = record.contains("ids_padded");
    if (padded) ids.resize(static_cast<size_t>(max_length));
    EXPECT_TRUE(json(ids) == record[padded ? "ids_padded" : "ids"]) << record.dump().substr(0, 200);
  }
  for (const json& record : expected["byte_raw"]) {
    EXPECT_EQ(json(EncodeBytes(FromHex(record["bytes_hex"]))), record["ids"]);
  }
}

TEST(ByteVocabulary, DecodesCutCharactersAndRefusesOtherIds) {
  const std::vector<int32_t> cut = {'a' + 1, 0xe6 + 1, 0x97 + 1, 0};
  EXPECT_EQ(DecodeBytes(cut).value(), "a\xef\xbf\xbd");
  for (int32_t bad : {-1, 257}) {
    const std::vector<int32_t> ids = {bad};
    EXPECT_EQ(DecodeBytes(ids).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(TokenVocabulary, ListOpsGolden) {
  const json expected = ReadGolden("lra");
  const auto vocabulary = TokenVocabulary::Create(expected["listops_vocab"]);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->size(), expected["listops_vocab_size"].get<int>());
  ASSERT_FALSE(expected["listops"].empty());
  for (const json& record : expected["listops"]) {
    const std::string renamed = RenameListOps(record["source"].get<std::string>());
    EXPECT_EQ(renamed, record["after_rename"]);
    EXPECT_EQ(json(vocabulary->Encode(renamed)), record["ids"]) << renamed;
  }
}

TEST(TokenVocabulary, RefusesRepeatedTokens) {
  EXPECT_FALSE(TokenVocabulary::Create({"a", "b", "a"}).ok());
  EXPECT_FALSE(TokenVocabulary::Create({""}).ok());
}

TEST(Dictionary, Golden) {
  const json expected = ReadGolden("char_dictionary");
  ASSERT_EQ(expected.size(), 2u);
  for (const auto& [name, golden] : expected.items()) {
    std::ifstream in(TokenizerGolden("char_dictionary") / golden["dict"].get<std::string>());
    std::stringstream text;
    text << in.rdbuf();
    const auto dictionary = Dictionary::Parse(text.str(), name);
    ASSERT_TRUE(dictionary.ok()) << dictionary.status();
    EXPECT_EQ(dictionary->size(), golden["size"].get<int>());
    for (const json& line : golden["lines"]) {
      EXPECT_EQ(json(dictionary->EncodeLine(line["symbols"].get<std::string>())), line["ids"]);
    }
  }
}

TEST(DictionaryCodecTest, WordsEndWithABlankAndPiecesDoNot) {
  const DictionaryCodec codec(*Dictionary::Parse("ab@@ 5\nc 3\nmadeupword0000 0", "dict.txt"));
  EXPECT_EQ(*codec.Encode("ab@@ c  c\tx"), (std::vector<int32_t>{4, 5, 5, 3}));
  EXPECT_EQ(codec.Bytes(4) + codec.Bytes(5) + codec.Bytes(5), "abc c ");
  for (const int32_t nothing : {-1, 0, 1, 2, 3, 6, 7}) EXPECT_EQ(codec.Bytes(nothing), "");
}

TEST(Dictionary, BrokenFilesNameTheLine) {
  for (const char* broken : {"a", "a 1\nb", "a 1\na 2", "a x", " 1", "<s> 3", "a 1\n\nb 2",
                             "a 1 #fairseq:overwrite", "a -1"}) {
    const auto dictionary = Dictionary::Parse(broken, "dict.txt");
    ASSERT_FALSE(dictionary.ok()) << broken;
    EXPECT_NE(dictionary.status().message().find("dict.txt: line "), std::string::npos);
  }
  EXPECT_EQ(Dictionary::Parse("a 1\r\nb 2", "dict.txt")->Symbol(5), "b");
  EXPECT_EQ(Dictionary::Parse("", "dict.txt")->size(), 4);
}

}  // namespace
}  // namespace longview::models
