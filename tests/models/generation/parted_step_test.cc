// PartedStep: where prompts are cut, whose logits come together, who leaves. The steps here compute
// nothing: a token's logits are its position.
#include "models/generation/parted_step.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "models/generation/prefill_part.h"

namespace longview::models {
namespace {

class Sequence final : public DecoderSequence {
 public:
  explicit Sequence(int tokens = 0) : read(tokens) {}
  int tokens() const override { return read; }
  std::unique_ptr<DecoderSequence> Fork() const override { return nullptr; }
  void Publish(uint64_t) override {}

  int read;
};

// What a part was asked to do, of one feed.
struct Seen {
  int part = 0;
  int start = 0, tokens = 0, encode = 0;
  WantedLogits wanted = WantedLogits::kNone;
  bool operator==(const Seen&) const = default;
};

class PositionStep final : public DecoderStep {
 public:
  PositionStep(std::span<const DecoderFeed> feeds, absl::Status status)
      : feeds_(feeds.begin(), feeds.end()), status_(std::move(status)) {}

  bool Advance() override {
    if (layer_++ == 0) return true;
    for (const DecoderFeed& feed : feeds_) {
      auto& sequence = static_cast<Sequence&>(*feed.sequence);
      const auto count = static_cast<int>(feed.tokens.size());
      std::vector<float>& logits = logits_.emplace_back();
      for (int i = 0; i < count; ++i) logits.push_back(static_cast<float>(sequence.read + i));
      if (feed.wanted == WantedLogits::kLast) logits = {logits.back()};
      if (feed.wanted == WantedLogits::kNone) logits.clear();
      sequence.read += count;
    }
    return false;
  }
  void Drop(int feed) override { dropped.push_back(feed); }
  absl::Status status() const override { return status_; }
  std::span<const float> Logits(int feed) const override {
    return logits_[static_cast<size_t>(feed)];
  }

  std::vector<int> dropped;

 private:
  const std::vector<DecoderFeed> feeds_;
  const absl::Status status_;
  int layer_ = 0;
  std::vector<std::vector<float>> logits_;
};

class Parts {
 public:
  std::unique_ptr<DecoderStep> Begin(const std::vector<DecoderFeed>& feeds) {
    return PartedStep::Begin(feeds, [this](std::span<const DecoderFeed> part) {
      for (const DecoderFeed& feed : part) {
        seen.push_back({begun, feed.sequence->tokens(), static_cast<int>(feed.tokens.size()),
                        feed.encode, feed.wanted});
      }
      auto step = std::make_unique<PositionStep>(
          part, begun == failing ? absl::ResourceExhaustedError("no memory") : absl::OkStatus());
      last = step.get();
      ++begun;
      return step;
    });
  }

  DecoderFeed Feed(Sequence& sequence, int tokens, WantedLogits wanted = WantedLogits::kLast) {
    ids_.resize(10'000);
    DecoderFeed feed;
    feed.sequence = &sequence;
    feed.tokens = std::span(ids_).first(static_cast<size_t>(tokens));
    feed.wanted = wanted;
    return feed;
  }

  std::vector<Seen> seen;
  int begun = 0;
  int failing = -1;  // The part that fails.
  PositionStep* last = nullptr;

 private:
  std::vector<int32_t> ids_;
};

void RunToEnd(DecoderStep& step) {
  while (step.Advance()) {
  }
}

TEST(PartedStep, WhatNeedsNoCutIsTheFamilysOwnStep) {
  Parts parts;
  Sequence reading, decoding(kPrefillPart - 1);
  const auto step = parts.Begin({parts.Feed(reading, kPrefillPart), parts.Feed(decoding, 1)});
  EXPECT_EQ(step.get(), parts.last);
}

TEST(PartedStep, PromptsAreCutAtTheSamePlacesHoweverTheyAreFed) {
  Parts parts;
  Sequence reading(100), decoding(5);
  const auto step = parts.Begin({parts.Feed(decoding, 1), parts.Feed(reading, 2 * kPrefillPart)});
  RunToEnd(*step);
  ASSERT_TRUE(step->status().ok());
  EXPECT_EQ(parts.seen, (std::vector<Seen>{{0, 5, 1, 0, WantedLogits::kLast},
                                           {0, 100, kPrefillPart - 100, 0, WantedLogits::kNone},
                                           {1, kPrefillPart, kPrefillPart, 0, WantedLogits::kNone},
                                           {2, 2 * kPrefillPart, 100, 0, WantedLogits::kLast}}));
  ASSERT_EQ(step->Logits(0).size(), 1u);
  EXPECT_EQ(step->Logits(0)[0], 5);
  ASSERT_EQ(step->Logits(1).size(), 1u);
  EXPECT_EQ(step->Logits(1)[0], 2 * kPrefillPart + 99);
}

TEST(PartedStep, AllLogitsAreThoseOfAllParts) {
  Parts parts;
  Sequence reading(7);
  const auto step = parts.Begin({parts.Feed(reading, kPrefillPart, WantedLogits::kAll)});
  RunToEnd(*step);
  ASSERT_EQ(parts.begun, 2);
  ASSERT_EQ(step->Logits(0).size(), size_t{kPrefillPart});
  for (int i = 0; i < kPrefillPart; ++i) ASSERT_EQ(step->Logits(0)[i], 7 + i);
}

TEST(PartedStep, DocumentsAreReadOnceAndFirst) {
  Parts parts;
  Sequence reading, other;
  DecoderFeed feed = parts.Feed(reading, kPrefillPart + 1);
  feed.encode = 300;
  DecoderFeed document = parts.Feed(other, 0, WantedLogits::kNone);
  document.encode = 40;
  const auto step = parts.Begin({feed, document});
  RunToEnd(*step);
  EXPECT_EQ(parts.seen, (std::vector<Seen>{{0, 0, kPrefillPart, 300, WantedLogits::kNone},
                                           {0, 0, 0, 40, WantedLogits::kNone},
                                           {1, kPrefillPart, 1, 0, WantedLogits::kLast}}));
}

TEST(PartedStep, WhoIsDroppedIsInNoLaterPart) {
  Parts parts;
  Sequence first, second;
  const auto step =
      parts.Begin({parts.Feed(first, 2 * kPrefillPart), parts.Feed(second, 2 * kPrefillPart)});
  ASSERT_TRUE(step->Advance());
  step->Drop(0);
  EXPECT_EQ(parts.last->dropped, std::vector<int>{0});
  RunToEnd(*step);
  EXPECT_EQ(first.tokens(), kPrefillPart);
  EXPECT_EQ(second.tokens(), 2 * kPrefillPart);
  EXPECT_EQ(parts.seen.size(), 3u);
  EXPECT_EQ(step->Logits(1).size(), 1u);
}

TEST(PartedStep, AFailingPartEndsTheStep) {
  Parts parts;
  parts.failing = 1;
  Sequence reading;
  const auto step = parts.Begin({parts.Feed(reading, 3 * kPrefillPart)});
  RunToEnd(*step);
  EXPECT_EQ(step->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(parts.begun, 2);
  EXPECT_FALSE(step->Advance());
}

}  // namespace
}  // namespace longview::models
