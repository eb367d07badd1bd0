// Tokens as text and where they begin.
#include "server/http/v1/completions_format.h"

#include <gtest/gtest.h>

#include <limits>
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

}  // namespace
}  // namespace longview::testing
