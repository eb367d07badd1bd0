// The flow of pieces to a reader that may be slow.
#include "server/api/calls/piece_flow.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace longview::testing {
namespace {

using models::Piece;
using server::GenerationEnd;
using server::PieceFlow;

Piece Part(int index, std::string text, std::string finish_reason = "") {
  Piece piece;
  piece.index = index;
  piece.token_ids = {static_cast<int32_t>(text.size())};
  piece.logprobs = {{7, -1.0f, text}};
  piece.text = std::move(text);
  piece.finish_reason = std::move(finish_reason);
  return piece;
}

class PieceFlowTest : public ::testing::Test {
 protected:
  void Add(std::vector<Piece> pieces) { EXPECT_TRUE(flow.Add(std::move(pieces)).ok()); }

  int ready = 0;
  PieceFlow flow{[this] { ++ready; }};
};

TEST_F(PieceFlowTest, TheReaderIsToldOnceUntilItFindsNothing) {
  EXPECT_TRUE(flow.Take().empty());
  flow.Admit();
  Add({Part(0, "a")});
  Add({Part(0, "b")});
  EXPECT_EQ(ready, 1);
  const PieceFlow::Output out = flow.Take();
  EXPECT_TRUE(out.admitted);
  ASSERT_EQ(out.pieces.size(), 1u);
  Add({Part(0, "c")});
  EXPECT_EQ(ready, 1);  // The last Take found something, so the reader asks again by itself.
  EXPECT_EQ(flow.Take().pieces.size(), 1u);
  EXPECT_TRUE(flow.Take().empty());
  Add({Part(0, "d")});
  EXPECT_EQ(ready, 2);
}

TEST_F(PieceFlowTest, NothingLeavesBeforeAdmission) {
  Add({Part(0, "a")});
  EXPECT_EQ(ready, 0);
  EXPECT_TRUE(flow.Take().empty());
  flow.Admit();
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(flow.Take().pieces.size(), 1u);
}

TEST_F(PieceFlowTest, SmallPiecesCountAsTheTextTheyBecome) {
  flow.Admit();
  for (int i = 0; i < 30'000; ++i) ASSERT_TRUE(flow.Add({Part(0, "token")}).ok()) << i;
}

TEST_F(PieceFlowTest, AReaderThatDoesNotReadEndsTheCall) {
  flow.Admit();
  Piece long_one = Part(0, std::string(PieceFlow::kMostBytes / 2, 'x'));
  long_one.logprobs.clear();  // Log-probabilities hold the text a second time, and count.
  const auto add = [&] { return flow.Add({long_one}); };
  EXPECT_TRUE(add().ok());
  EXPECT_TRUE(add().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(add()));
  EXPECT_EQ(flow.Take().pieces.size(), 1u);
  EXPECT_TRUE(add().ok()) << "it reads again";
}

TEST_F(PieceFlowTest, AlternativesCountAsMuchAsText) {
  flow.Admit();
  Piece scored = Part(0, "x");
  scored.top = {
      std::vector<models::TokenLogprob>(PieceFlow::kMostBytes / 2 / sizeof(models::TokenLogprob))};
  const auto add = [&] { return flow.Add({scored}); };
  EXPECT_TRUE(add().ok());
  EXPECT_TRUE(add().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(add()));
}

TEST_F(PieceFlowTest, PiecesOfASequenceJoinInOrder) {
  flow.Admit();
  Add({Part(0, "a"), Part(1, "x")});
  Add({Part(0, "b"), Part(2, "p")});
  Add({Part(1, "y"), Part(0, "c")});
  const std::vector<Piece> pieces = flow.Take().pieces;
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].text, "abc");
  EXPECT_EQ(pieces[0].token_ids.size(), 3u);
  EXPECT_EQ(pieces[0].logprobs.size(), 3u);
  EXPECT_EQ(pieces[0].logprobs[2].bytes, "c");
  EXPECT_EQ(pieces[1].text, "xy");
  EXPECT_EQ(pieces[2].text, "p");
}

TEST_F(PieceFlowTest, ThePromptStaysApartAndIsOneForAll) {
  flow.Admit();
  const auto prompt =
      std::make_shared<const Piece>(Part(0, std::string(PieceFlow::kMostBytes, 'x')));
  flow.AddEcho({prompt, 2, 3});
  EXPECT_EQ(ready, 1);
  Add({Part(2, "a")});
  Add({Part(2, "b")});
  const PieceFlow::Output out = flow.Take();
  ASSERT_EQ(out.echoes.size(), 1u);
  EXPECT_EQ(out.echoes[0].prompt, prompt);
  EXPECT_EQ(out.echoes[0].first, 2);
  EXPECT_EQ(out.echoes[0].copies, 3);
  ASSERT_EQ(out.pieces.size(), 1u);
  EXPECT_EQ(out.pieces[0].text, "ab");
}

TEST_F(PieceFlowTest, TheLastPieceComesWithTheEnd) {
  flow.Admit();
  EXPECT_TRUE(flow.Take().admitted);
  EXPECT_TRUE(flow.Take().empty());
  EXPECT_EQ(ready, 1);
  Add({Part(0, "a", "stop")});
  EXPECT_EQ(ready, 1);
  EXPECT_TRUE(flow.Take().empty());
  Add({Part(1, "b", "length")});
  // Something follows the first: it may go.
  EXPECT_EQ(ready, 2);
  EXPECT_EQ(flow.Take().pieces.size(), 1u);
  EXPECT_TRUE(flow.Take().empty());
  flow.End({absl::OkStatus(), {}});
  const PieceFlow::Output last = flow.Take();
  ASSERT_EQ(last.pieces.size(), 1u);
  EXPECT_EQ(last.pieces[0].index, 1);
  EXPECT_TRUE(last.end.has_value());
  EXPECT_TRUE(flow.Take().empty());
}

TEST_F(PieceFlowTest, AFailureDropsWhatWaits) {
  Add({Part(0, "a")});
  flow.AddEcho({std::make_shared<const Piece>(Part(0, "prompt")), 0, 1});
  flow.End({absl::CancelledError("gone"), {}});
  Add({Part(0, "b")});
  flow.End({absl::OkStatus(), {}});
  const PieceFlow::Output out = flow.Take();
  EXPECT_TRUE(out.pieces.empty());
  EXPECT_TRUE(out.echoes.empty());
  ASSERT_TRUE(out.end.has_value());
  EXPECT_EQ(out.end->status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(flow.Take().empty());
}

}  // namespace
}  // namespace longview::testing
