// The memory of answers, counted among a client's bytes.
#include "server/api/calls/answer_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/limits/byte_budget.h"

namespace longview::testing {
namespace {

using server::AnswerBytes;
using server::ByteBudget;
using ::testing::HasSubstr;

TEST(AnswerBytesTest, CountAmongTheClientsAndAreGivenBack) {
  ByteBudget budget({.total = 4 << 20, .per_client = 1 << 20});
  {
    AnswerBytes bytes(&budget, "client");
    EXPECT_TRUE(bytes.Add(1000).ok());
    EXPECT_EQ(budget.held("client"), 0u) << "a few are not worth it";
    EXPECT_TRUE(bytes.Add(200'000).ok());
    EXPECT_TRUE(bytes.Add(300'000).ok());
    EXPECT_EQ(budget.held("client"), 501'000u);
    const absl::Status most = bytes.Add(600'000);
    EXPECT_EQ(most.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(most.message()), HasSubstr("1101000 bytes"));
    EXPECT_THAT(std::string(most.message()), HasSubstr("limit is 1048576"));
    EXPECT_EQ(budget.held("client"), 501'000u) << "what was counted stays";
    AnswerBytes other(&budget, "client");
    EXPECT_EQ(other.Add(700'000).code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(budget.held("client"), 0u);
}

TEST(MemoryOf, APieceIsAllThatItHolds) {
  constexpr size_t kTokens = 1000;
  constexpr size_t kAlternatives = 20;
  models::Piece piece;
  piece.echo = true;
  piece.text.assign(5000, 'x');
  piece.token_ids.resize(kTokens);
  piece.logprobs.assign(kTokens, {7, -1, "token"});
  piece.top.assign(kTokens, std::vector<models::TokenLogprob>(kAlternatives, {7, -1, "token"}));
  const size_t bytes = server::MemoryOf(piece);
  const size_t least =
      5000 + 4 * kTokens + (kAlternatives + 1) * kTokens * sizeof(models::TokenLogprob);
  EXPECT_GE(bytes, least);
  EXPECT_LE(bytes, least + kTokens * (sizeof(piece.top[0]) + 200) + sizeof(piece));
  models::Answer answer;
  answer.prompt = piece;
  answer.sequences = {piece, piece};
  EXPECT_GE(server::MemoryOf(answer), 3 * bytes);
}

}  // namespace
}  // namespace longview::testing
