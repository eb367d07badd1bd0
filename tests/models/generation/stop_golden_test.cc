// Stopping, cutting and hold-back, against the fixture of the specification.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/generation/sampling/streamed_text.h"
#include "tests/models/generation/golden.h"

namespace longview::models {
namespace {

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

bool Holds(const nlohmann::json& list, int id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

TEST(StopGolden, PiecesAreTheEarliestAllowed) {
  const nlohmann::json description = GoldenJson("transformer_ls_lm/stop_sequences/case.json");
  ASSERT_EQ(description["vectors"].size(), 27u);
  for (const auto& vector : description["vectors"]) {
    SCOPED_TRACE(vector["name"].get<std::string>());
    const auto stops = vector["stop"].get<std::vector<std::string>>();
    StreamedText text(stops);
    std::vector<std::string> pieces;
    std::string whole, reason;
    for (const auto& token : vector["tokens"]) {
      const int id = token[0];
      std::string& piece = pieces.emplace_back();
      const bool ends = Holds(vector["stop_token_ids"], id) ||
                        (!vector["ignore_eos"] && Holds(vector["eos_token_ids"], id));
      const auto& limit = vector["max_new_tokens"];
      if (ends || text.Append(FromHex(token[1]))) {
        reason = "stop";
      } else if (!limit.is_null() && static_cast<int>(pieces.size()) == limit) {
        reason = "length";
      }
      reason.empty() ? text.Release(piece) : text.Finish(piece);
      whole += piece;
      if (!reason.empty()) break;
    }
    const auto& expected = vector["expected"];
    EXPECT_EQ(pieces, expected["pieces"].get<std::vector<std::string>>());
    EXPECT_EQ(whole, expected["text"].get<std::string>());
    EXPECT_EQ(reason, expected["finish_reason"].get<std::string>());
    EXPECT_EQ(static_cast<int>(pieces.size()), expected["completion_tokens"].get<int>());
  }
}

}  // namespace
}  // namespace longview::models
