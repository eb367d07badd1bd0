// Inputs by the files beside a tokenizer, as AutoTokenizer makes them.
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/text/tokenizer.h"
#include "tests/models/text/golden_file.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using nlohmann::json;

absl::StatusOr<Tokenizer> LoadPatched(const json& record) {
  testing::TempDirectory directory;
  json document = ReadGoldenJson(record["base"].get<std::string>() + "/tokenizer.json");
  if (record.contains("patch")) document.update(record["patch"]);
  directory.Write("tokenizer.json", document.dump());
  if (!record["config"].is_null()) {
    directory.Write("tokenizer_config.json", record["config"].dump());
  }
  directory.Write("config.json", json{{"model_type", record["model_type"]}}.dump());
  return Tokenizer::Load(directory.path());
}

void CheckRecord(const json& golden, const json& record) {
  const absl::StatusOr<Tokenizer> tokenizer = LoadPatched(record);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::string text = golden["text"], second = golden["second"];
  EncodeOptions options;
  const auto single = tokenizer->Encode(text, options);
  ASSERT_TRUE(single.ok()) << single.status();
  EXPECT_EQ(json(single->encoding.ids), record["ids"]);

  const auto pair = tokenizer->EncodePair(text, second, options);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(json(pair->encoding.ids), record["pair"]);
  std::vector<int32_t> types = pair->encoding.type_ids;
  if (!tokenizer->gives_types()) types.assign(types.size(), 0);
  EXPECT_EQ(json(types), record["types"]);

  options.max_length = golden["cut_to"];
  options.cut_left = tokenizer->cuts_left();
  EXPECT_EQ(json(tokenizer->Encode(text, options)->encoding.ids), record["cut"]);
  EXPECT_EQ(json(tokenizer->cuts_left()), record["left"]);
  EXPECT_EQ(json(tokenizer->model_max_length()), record["max"]);
  const json& roles = record["roles"];
  EXPECT_EQ(tokenizer->special().unk, roles["unk"].get<int32_t>());
  EXPECT_EQ(tokenizer->special().mask, roles["mask"].get<int32_t>());
}

TEST(TokenizerInputs, AreThoseOfAutoTokenizer) {
  const json golden = ReadGolden("inputs");
  ASSERT_GT(golden["directories"].size(), 100u);
  for (const json& record : golden["directories"]) {
    SCOPED_TRACE(record["name"]);
    CheckRecord(golden, record);
  }
}

}  // namespace
}  // namespace longview::models
