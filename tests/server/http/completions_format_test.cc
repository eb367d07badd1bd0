// Tokens as text and where they begin.
#include "server/http/v1/completions_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace longview::testing {
namespace {

using models::TokenLogprob;
using nlohmann::json;
using server::TextOffsets;
using server::TokenText;

TEST(TokenText, WholeCharactersAreThemselves) {
  for (const char* text : {"a", " word", "é", "€", "\xF0\x9F\x98\x80", "\n", "naïve"}) {
    EXPECT_EQ(TokenText({1, 0, text}), text);
  }
}

TEST(TokenText, PartsOfCharactersAreBytes) {
  EXPECT_EQ(TokenText({1, 0, "\xE2"}), "bytes:\\xe2");
  EXPECT_EQ(TokenText({1, 0, "\x82\xAC"}), "bytes:\\x82\\xac");
  EXPECT_EQ(TokenText({1, 0, "a\xC3"}), "bytes:\\x61\\xc3");
  EXPECT_EQ(TokenText({1, 0, "\xFF"}), "bytes:\\xff");
  EXPECT_EQ(TokenText({1, 0, "\xC0\x80"}), "bytes:\\xc0\\x80");
}

TEST(TokenText, WhatAddsNoTextIsItsNumber) { EXPECT_EQ(TokenText({256, 0, ""}), "token_id:256"); }

TEST(TextOffsets, CountCodePoints) {
  // "aé€b", the euro sign in three tokens, a special one in between, then a broken character.
  const std::vector<std::string> tokens = {"a", "\xC3\xA9", "\xE2", "\x82", "\xAC",
                                           "",  "b",        "\xE2", "c"};
  const std::vector<int64_t> wanted = {0, 1, 2, 2, 2, 3, 3, 4, 5};
  TextOffsets offsets;
  std::vector<int64_t> found;
  for (const std::string& token : tokens) found.push_back(offsets.Next(token));
  EXPECT_EQ(found, wanted);
}

TEST(AppendChoice, TheLikelierOfTokensWithOneTextCounts) {
  models::Piece piece;
  piece.index = 3;
  piece.text = "x\"";
  piece.logprobs = {{7, -2, "x"}, {8, std::numeric_limits<float>::quiet_NaN(), "\""}};
  piece.top = {{{5, -1, "y"}, {6, -1.5, "y"}}, {}};
  piece.finish_reason = "stop";
  TextOffsets offsets;
  std::string out;
  server::AppendChoice({"id", "r", 1, "m", true, true}, piece, &offsets, &out);
  EXPECT_EQ(json::parse(out),
            json::parse(R"({"index":3,"text":"x\"","finish_reason":"stop","logprobs":{
                "tokens":["x","\""],"token_logprobs":[-2.0,null],
                "top_logprobs":[{"y":-1.0,"x":-2.0},null],"text_offset":[0,1]}})"));
}

models::Piece LongPiece(int tokens) {
  models::Piece piece;
  for (int i = 0; i < tokens; ++i) {
    piece.text += "word ";
    piece.logprobs.push_back({i, -0.5, "word "});
    piece.top.push_back({{i, -0.25, "other"}});
  }
  return piece;
}

const server::CompletionNames kNames = {"id", "r", 1, "m", true, true};

TEST(ChoiceWriter, PartsAreTheWhole) {
  const models::Piece prompt = LongPiece(300), sequence = LongPiece(50);
  TextOffsets offsets, again;
  std::string whole, parts;
  server::ChoiceWriter(kNames, {&prompt, &sequence}, 7, &offsets).Append(1 << 20, &whole);
  server::ChoiceWriter writer(kNames, {&prompt, &sequence}, 7, &again);
  size_t longest = 0;
  for (bool more = true; more;) {
    std::string part;
    more = writer.Append(100, &part);
    // The text is one part; the tokens are not.
    if (!parts.empty()) longest = std::max(longest, part.size());
    parts += part;
  }
  EXPECT_EQ(parts, whole);
  EXPECT_LT(longest, 200u);
  const json read = json::parse(whole);
  EXPECT_EQ(read["index"], 7);
  EXPECT_EQ(read["text"], prompt.text + sequence.text);
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(read["logprobs"][list].size(), 350u) << list;
  }
}

TEST(ChoiceWriter, WhatIsCutIsStillJson) {
  const models::Piece piece = LongPiece(300);
  for (const size_t most : {1, 1000, 5000, 9000, 12000}) {
    TextOffsets offsets;
    std::string out;
    server::ChoiceWriter writer(kNames, {&piece}, 0, &offsets);
    EXPECT_TRUE(writer.Append(most, &out));
    writer.Cut();
    EXPECT_FALSE(writer.Append(1 << 20, &out));
    EXPECT_EQ(json::parse(out)["text"], piece.text) << most;
    EXPECT_LT(out.size(), most + 2000) << most;
  }
}

TEST(CompletionBody, IsWrittenNoFurtherThanItsLimit) {
  std::vector<server::Completed> completed(1);
  completed[0].answer.prompt = LongPiece(3000);
  completed[0].answer.sequences.assign(100, LongPiece(1));
  const absl::StatusOr<std::string> whole = server::CompletionBody(kNames, completed, 100 << 20);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(json::parse(*whole)["choices"].size(), 100u);
  const size_t bound = server::CompletionBytes(kNames, completed);
  EXPECT_GE(bound, whole->size() * 2 / 3);
  EXPECT_LE(bound, whole->size() * 2);
  const absl::Status refused = server::CompletionBody(kNames, completed, 1 << 20).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("the limit is 1048576"), absl::string_view::npos);
  EXPECT_EQ(server::CompletionBody(kNames, completed, whole->size())->size(), whole->size());
}

}  // namespace
}  // namespace longview::testing
