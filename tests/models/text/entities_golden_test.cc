// Entities of texts by tokenizers of every kind, as HuggingFace's pipeline finds them.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/text/entities.h"
#include "models/text/tokenizer.h"
#include "nlohmann/json.hpp"
#include "tests/models/text/golden_file.h"

namespace longview::models {
namespace {

using nlohmann::json;

// The tokenizer of a record: files of another golden, or written out from the record itself.
Tokenizer LoadRecord(const json& record) {
  std::string directory = GoldenPath(record["model"].get<std::string>()) / "model";
  if (record.contains("tokenizer")) {
    directory = std::filesystem::path(testing::TempDir()) / record["model"].get<std::string>();
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/tokenizer.json") << record["tokenizer"];
    std::ofstream(directory + "/tokenizer_config.json") << record["tokenizer_config"];
  }
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Load(directory);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<float> Logits(int rows, int labels) {
  std::vector<float> logits;
  for (int t = 0; t < rows; ++t) {
    for (int l = 0; l < labels; ++l) {
      logits.push_back(static_cast<float>((37 * t + 101 * l + 53 * (t * l % 7)) % 97) / 16);
    }
  }
  return logits;
}

void CheckEntities(const std::vector<EntitySpan>& found, const json& expected) {
  json places = json::array(), wanted = json::array();
  for (const EntitySpan& e : found) places.push_back({e.label, e.start, e.end});
  for (const json& e : expected) wanted.push_back({e[0], e[1], e[2]});
  EXPECT_EQ(places, wanted);
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    EXPECT_NEAR(found[i].score, expected[i][3].get<double>(), 1e-5);
  }
}

TEST(EntitiesGolden, EveryTokenizerAndAggregation) {
  const json golden = ReadGolden("entities");
  const std::vector<std::string> labels = golden["labels"];
  ASSERT_EQ(golden["tokenizers"].size(), 9u);
  for (const json& record : golden["tokenizers"]) {
    const Tokenizer tokenizer = LoadRecord(record);
    for (const json& text : record["texts"]) {
      const std::string words = text["text"];
      const auto encoded = tokenizer.Encode(words, {});
      ASSERT_TRUE(encoded.ok()) << encoded.status();
      const Encoding& encoding = encoded->encoding;
      ASSERT_EQ(json(encoding.ids), text["ids"]) << record["model"] << " " << words;
      const std::vector<float> logits =
          Logits(static_cast<int>(encoding.ids.size()), static_cast<int>(labels.size()));
      for (const auto& [name, expected] : text["entities"].items()) {
        SCOPED_TRACE(record["model"].dump() + " " + words + " " + name);
        CheckEntities(FindEntities(words, TokensOfText(encoding, tokenizer), logits, labels,
                                   *ParseAggregation(name)),
                      expected);
      }
    }
  }
}

}  // namespace
}  // namespace longview::models
