// Byte and symbol vocabularies against golden/tokenizers.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/text/dictionary.h"
#include "models/text/dictionary_codec.h"
#include "models/text/lra_tokenizer.h"
#include "tests/models/text/golden_file.h"
#include "tests/support/temp_directory.h"

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

TEST(LraBytesTest, Golden) {
  const testing::TempDirectory directory;
  directory.Write("tokenizer_config.json", R"({"tokenizer_class": "LRAByteTokenizer"})");
  const auto bytes = ReadLraBytes(directory.path());
  ASSERT_TRUE(bytes.ok() && *bytes) << bytes.status();
  EXPECT_EQ((*bytes)->max_id, 256);
  const json expected = ReadGolden("lra");
  ASSERT_FALSE(expected["byte"].empty());
  for (const json& record : expected["byte"]) {
    if (record.contains("max_length")) continue;  // Cut or padded by the caller.
    const auto ids = (*bytes)->codec->Encode(record["text"].get<std::string>()).value();
    EXPECT_TRUE(json(ids) == record["ids"]) << record.dump().substr(0, 200);
    std::string text;
    for (const int32_t id : ids) text += (*bytes)->codec->Bytes(id);
    EXPECT_EQ(text, record["decoded"]);
  }
  for (const json& record : expected["byte_raw"]) {
    EXPECT_EQ(json((*bytes)->codec->Encode(FromHex(record["bytes_hex"])).value()), record["ids"]);
  }
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
