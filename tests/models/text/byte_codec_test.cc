// The tokenizers of byte-level language models against golden/transformer_ls_lm/tokenizer.
#include "models/text/byte_codec.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/text/utf8.h"
#include "tests/models/text/golden_file.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using nlohmann::json;

std::string Hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

TEST(ByteCodec, Golden) {
  const std::string directory = GoldenPath("transformer_ls_lm/tokenizer").string();
  const json vectors = ReadGoldenJson("transformer_ls_lm/tokenizer/case.json")["vectors"];
  ASSERT_FALSE(vectors.empty());
  for (const json& vector : vectors) {
    const auto codec =
        ByteCodec::Create(&vector["tokenizer"], directory, vector["vocab_size"], "config.json");
    ASSERT_TRUE(codec.ok()) << codec.status();
    const auto ids = vector["ids"].get<std::vector<int32_t>>();
    if (!vector["text"].is_null()) {
      EXPECT_EQ((*codec)->Encode(vector["text"].get<std::string>()).value(), ids) << vector;
    }
    std::string bytes;
    for (const int32_t id : ids) bytes += (*codec)->Bytes(id);
    EXPECT_EQ(Hex(bytes), vector["decoded_hex"]) << vector;
    EXPECT_EQ(ReplaceInvalidUtf8(bytes), vector["decoded"]) << vector;
  }
}

TEST(ByteCodec, BytesBehindSpecialsAndIdsOutOfRange) {
  const json object = {{"type", "bytes"}, {"offset", 3}};
  const auto codec = ByteCodec::Create(&object, "", 260, "config.json");
  ASSERT_TRUE(codec.ok()) << codec.status();
  EXPECT_EQ((*codec)
                ->Encode("\xff"
                         "a")
                .value(),
            (std::vector<int32_t>{258, 100}));
  EXPECT_EQ((*codec)->Bytes(258), "\xff");
  for (const int32_t id : {-1, 0, 2, 259, 260, 1 << 30}) EXPECT_EQ((*codec)->Bytes(id), "") << id;
}

TEST(ByteCodec, RefusesWhatItDoesNotKnow) {
  const testing::TempDirectory directory;
  directory.Write("dict.txt", "97 3\n98 2\n");
  const auto refused = [&](json object, int vocabulary) {
    const auto codec = ByteCodec::Create(&object, directory.Path(""), vocabulary, "config.json");
    return codec.ok() ? "accepted" : std::string(codec.status().message());
  };
  EXPECT_EQ(refused({{"type", "fairseq_enwik8"}, {"file", "dict.txt"}}, 6), "accepted");
  EXPECT_NE(refused({{"type", "fairseq_enwik8"}, {"file", "dict.txt"}}, 8).find("vocab_size is 8"),
            std::string::npos);
  EXPECT_NE(refused({{"type", "fairseq_enwik8"}, {"file", "../dict.txt"}}, 6).find("file"),
            std::string::npos);
  EXPECT_NE(refused({{"type", "fairseq_enwik8"}, {"file", "none.txt"}}, 6).find("none.txt"),
            std::string::npos);
  EXPECT_NE(refused({{"type", "bpe"}}, 256).find("fairseq_text8"), std::string::npos);
  EXPECT_NE(refused({{"type", "bytes"}, {"offset", 1}}, 256).find("offset"), std::string::npos);
  EXPECT_NE(refused({{"type", "bytes"}, {"ofset", 1}}, 256).find("ofset"), std::string::npos);
  EXPECT_NE(refused("bytes", 256).find("object"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
