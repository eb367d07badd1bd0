// PassStep: how feeds are cut into runs, whose logits go where, who leaves. The passes here compute
// nothing: a token's logits are its position.
#include "models/generation/decoder/pass_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <ostream>
#include <utility>
#include <vector>

#include "models/generation/decoder/token_run.h"

namespace longview::models {
namespace {

using kernels::CacheStep;

constexpr int kVocab = 3;

// A pass's work for one run.
struct Seen {
  int pass = 0;
  CacheStep::Group group = CacheStep::kPrefill;
  int64_t start = 0, rows = 0, wanted = 0;
  bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* out) {
  *out << "pass " << seen.pass << " group " << seen.group << ": " << seen.start << " + "
       << seen.rows << ", " << seen.wanted << " wanted";
}

class PositionPass final : public TokenPass {
 public:
  PositionPass(kernels::ProjectionCache* cache, std::vector<TokenRun> runs)
      : runs_(std::move(runs)), step_(cache) {
    SortRuns(runs_);
  }

  absl::Status Begin() override { return AppendRuns(runs_, step_); }
  bool Advance() override {
    for (const TokenRun& run : runs_) {
      for (int64_t i = 0; i < run.wanted; ++i) {
        const int64_t position = run.start + run.rows() - run.wanted + i;
        std::fill_n(run.logits + i * kVocab, kVocab, static_cast<float>(position));
      }
    }
    step_.End();
    return false;
  }

 private:
  std::vector<TokenRun> runs_;
  CacheStep step_;
};

class Steps {
 public:
  explicit Steps(int64_t bytes = 256 << 20) : budget_(bytes) {
    kernels::CacheShape shape;
    shape.Dk = shape.Dv = 16;
    shape.strips = {kernels::WindowStrip(0)};
    cache_ = kernels::ProjectionCache::Create(shape, {}, &budget_);
  }

  std::unique_ptr<CachedSequence> Sequence(int64_t tokens = 0) {
    auto sequence = std::make_unique<CachedSequence>(kernels::CacheSequence(cache_.get()));
    if (tokens > 0) Run({Feed(*sequence, tokens)});
    seen.clear();
    return sequence;
  }

  DecoderFeed Feed(DecoderSequence& sequence, int64_t tokens,
                   WantedLogits wanted = WantedLogits::kLast,
                   DecoderPhase phase = DecoderPhase::kPrefill) {
    ids_.resize(20'000);
    DecoderFeed feed;
    feed.sequence = &sequence;
    feed.tokens = std::span(ids_).first(static_cast<size_t>(tokens));
    feed.wanted = wanted;
    feed.phase = phase;
    return feed;
  }

  std::unique_ptr<PassStep> Begin(const std::vector<DecoderFeed>& feeds, int64_t boundary = 0) {
    return std::make_unique<PassStep>(
        PassStep::Rules{"test", kVocab, boundary, pass_tokens, pass_runs}, feeds,
        [this, pass = 0](std::vector<TokenRun> runs) mutable {
          for (const TokenRun& run : runs) {
            seen.push_back({pass, run.group, run.start, run.rows(), run.wanted});
          }
          ++pass;
          return std::make_unique<PositionPass>(cache_.get(), std::move(runs));
        });
  }

  std::unique_ptr<PassStep> Run(const std::vector<DecoderFeed>& feeds, int64_t boundary = 0) {
    std::unique_ptr<PassStep> step = Begin(feeds, boundary);
    while (step->Advance()) {
    }
    return step;
  }

  std::vector<Seen> seen;
  int64_t pass_tokens = 0;  // Value for PassStep::Rules.
  int pass_runs = 0;

 private:
  kernels::CacheBudget budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  std::vector<int32_t> ids_;
};

TEST(PassStep, APromptIsOneRun) {
  Steps steps;
  const auto sequence = steps.Sequence();
  steps.Run({steps.Feed(*sequence, 700)});
  EXPECT_EQ(steps.seen, (std::vector<Seen>{{0, CacheStep::kPrefill, 0, 700, 1}}));
  EXPECT_EQ(sequence->tokens(), 700);
}

TEST(PassStep, PrefillInsideABlockGoesToItsEndFirst) {
  Steps steps;
  const auto sequence = steps.Sequence(70);
  steps.Run({steps.Feed(*sequence, 200)});
  EXPECT_EQ(steps.seen, (std::vector<Seen>{{0, CacheStep::kResume, 70, 58, 0},
                                           {1, CacheStep::kPrefill, 128, 142, 1}}));
}

TEST(PassStep, NoPassReadsMoreThanItsScratchWasPricedFor) {
  Steps steps;
  const auto sequence = steps.Sequence(64);
  steps.Run({steps.Feed(*sequence, 2 * kPrefillPart)});
  EXPECT_EQ(steps.seen, (std::vector<Seen>{{0, CacheStep::kPrefill, 64, kPrefillPart - 64, 0},
                                           {1, CacheStep::kPrefill, kPrefillPart, kPrefillPart, 0},
                                           {2, CacheStep::kPrefill, 2 * kPrefillPart, 64, 1}}));
}

// Feeds that do not fit into a pass any more come in the next one; decoding ones have room of their
// own.
TEST(PassStep, PassesKeepTheirLimits) {
  Steps steps;
  const auto a = steps.Sequence(), b = steps.Sequence(), c = steps.Sequence(),
             d = steps.Sequence(5), e = steps.Sequence(7), f = steps.Sequence(9);
  const auto decode = [&](DecoderSequence& sequence) {
    return steps.Feed(sequence, 1, WantedLogits::kLast, DecoderPhase::kDecode);
  };
  steps.pass_tokens = kPrefillPart;
  steps.pass_runs = 2;
  steps.Run({steps.Feed(*a, 1500), decode(*d), steps.Feed(*b, 600), decode(*e), steps.Feed(*c, 500),
             decode(*f)});
  EXPECT_EQ(steps.seen, (std::vector<Seen>{{0, CacheStep::kPrefill, 0, 1500, 1},
                                           {0, CacheStep::kDecode, 5, 1, 1},
                                           {0, CacheStep::kDecode, 7, 1, 1},
                                           {0, CacheStep::kPrefill, 0, 500, 1},
                                           {1, CacheStep::kPrefill, 0, 600, 1},
                                           {1, CacheStep::kDecode, 9, 1, 1}}));
}

TEST(PassStep, NoRunCrossesABoundary) {
  Steps steps;
  const auto sequence = steps.Sequence();
  steps.Run({steps.Feed(*sequence, 300)}, 96);
  int64_t position = 0;
  for (const Seen& run : steps.seen) {
    EXPECT_EQ(run.start, position);
    EXPECT_EQ(run.start / 96, (run.start + run.rows - 1) / 96);
    EXPECT_EQ(run.group, run.start % 64 == 0 ? CacheStep::kPrefill : CacheStep::kResume);
    position += run.rows;
  }
  EXPECT_EQ(position, 300);
}

TEST(PassStep, LogitsOfAllTokensComeFromAllPasses) {
  Steps steps;
  const auto sequence = steps.Sequence(70);
  const auto step = steps.Run({steps.Feed(*sequence, 3000, WantedLogits::kAll)});
  const std::span<const float> logits = step->Logits(0);
  ASSERT_EQ(logits.size(), 3000u * kVocab);
  for (size_t i = 0; i < logits.size(); ++i) {
    ASSERT_EQ(logits[i], 70.0f + static_cast<float>(i / kVocab)) << i;
  }
}

// Checks that the rows of a sink are their positions, and keeps these.
class Positions final : public LogitSink {
 public:
  void Add(int position, std::span<const float> rows) override {
    largest = std::max(largest, rows.size() / kVocab);
    for (size_t i = 0; i < rows.size(); i += kVocab, ++position) {
      EXPECT_EQ(rows[i], static_cast<float>(position));
      positions.push_back(position);
    }
  }

  std::vector<int> positions;
  size_t largest = 0;
};

TEST(PassStep, ASinkGetsTheRowsOfEachPassAndTheLastStays) {
  Steps steps;
  const auto sequence = steps.Sequence(70);
  Positions sink;
  DecoderFeed feed = steps.Feed(*sequence, 3 * kPrefillPart, WantedLogits::kAll);
  feed.sink = &sink;
  const auto step = steps.Run({feed});
  std::vector<int> all(3 * kPrefillPart);
  std::iota(all.begin(), all.end(), 70);
  EXPECT_EQ(sink.positions, all);
  EXPECT_LE(sink.largest, static_cast<size_t>(kPrefillPart));
  const std::span<const float> last = step->Logits(0);
  ASSERT_EQ(last.size(), size_t{kVocab});
  EXPECT_EQ(last[0], static_cast<float>(all.back()));
}

TEST(PassStep, ASinkGetsNothingOfAPassInWhichItsFeedLeft) {
  Steps steps;
  const auto sequence = steps.Sequence();
  Positions sink;
  DecoderFeed feed = steps.Feed(*sequence, 3 * kPrefillPart, WantedLogits::kAll);
  feed.sink = &sink;
  const auto step = steps.Begin({feed});
  ASSERT_TRUE(step->Advance());
  EXPECT_EQ(sink.positions.size(), size_t{kPrefillPart});
  step->Drop(0);
  EXPECT_FALSE(step->Advance());
  EXPECT_EQ(sink.positions.size(), size_t{kPrefillPart});
}

TEST(PassStep, SingleTokensDoNotWaitForOthersPasses) {
  Steps steps;
  const auto decoding = steps.Sequence(100), reading = steps.Sequence();
  const auto step =
      steps.Run({steps.Feed(*reading, 3000, WantedLogits::kNone),
                 steps.Feed(*decoding, 1, WantedLogits::kLast, DecoderPhase::kDecode)});
  EXPECT_EQ(steps.seen, (std::vector<Seen>{{0, CacheStep::kPrefill, 0, kPrefillPart, 0},
                                           {0, CacheStep::kDecode, 100, 1, 1},
                                           {1, CacheStep::kPrefill, kPrefillPart, 952, 0}}));
  EXPECT_TRUE(step->Logits(0).empty());
  ASSERT_EQ(step->Logits(1).size(), size_t{kVocab});
  EXPECT_EQ(step->Logits(1)[0], 100);
}

TEST(PassStep, WhoIsDroppedLeavesBeforeTheNextPass) {
  Steps steps;
  const auto first = steps.Sequence(), second = steps.Sequence();
  const auto step = steps.Begin({steps.Feed(*first, 3000), steps.Feed(*second, 3000)});
  EXPECT_TRUE(step->Advance());
  step->Drop(0);
  EXPECT_FALSE(step->Advance());
  EXPECT_EQ(first->tokens(), kPrefillPart);
  EXPECT_EQ(second->tokens(), 3000);
  EXPECT_TRUE(step->status().ok());
}

TEST(PassStep, WithoutMemoryItEnds) {
  Steps steps(1 << 14);
  const auto sequence = steps.Sequence();
  const auto step = steps.Begin({steps.Feed(*sequence, 5000)});
  EXPECT_FALSE(step->Advance());
  EXPECT_EQ(step->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(step->Advance());
}

}  // namespace
}  // namespace longview::models
