// Random lives of many sequences in a cache that is exactly as large as what they reserved: no
// append ever fails, every row stays what was written, and nothing is left at the end.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/kernels/cache/driver.h"

namespace longview::kernels {
namespace {

using testing::Driver;
using testing::SmallShape;
using testing::Text;

constexpr int kSequences = 6;
constexpr int kTexts = 4;
constexpr int64_t kLongest = 900;
constexpr int kOnHost = 15;  // Seeds.

struct Life {
  CacheSequence sequence;
  bool found = false;  // Since then nothing was appended.
};

class Zoo {
 public:
  Zoo(const CacheShape& shape, int seed)
      : random_(seed),
        budget_(kSequences * shape.SequenceBytes(0, kLongest, 1)),
        driver_(shape, &budget_, Headroom()) {}

  void Turn() {
    const int what = Below(10);
    if (what < 2 && lives_.size() < kSequences) {
      Open();
    } else if (what == 2 && !lives_.empty() && lives_.size() < kSequences) {
      Life& parent = lives_[Below(static_cast<int>(lives_.size()))];
      lives_.push_back({parent.sequence.Fork(), parent.found});
    } else if (what == 3 && !lives_.empty()) {
      const auto end = lives_.begin() + Below(static_cast<int>(lives_.size()));
      end->sequence.CachePrefix();
      lives_.erase(end);
    } else if (what == 4 && !lives_.empty()) {
      lives_[Below(static_cast<int>(lives_.size()))].sequence.CachePrefix();
    } else {
      Step();
    }
    CheckBytes();
  }

  void CheckRows() {
    for (const Life& life : lives_) driver_.Check(life.sequence, life.found);
  }

  void End() {
    lives_.clear();
    EXPECT_EQ(budget_.used(), 0);
  }

  ProjectionCache::Stats stats() { return driver_.cache()->stats(); }

 private:
  static ProjectionCache::Options Headroom() {
    ProjectionCache::Options options;
    options.step_tokens = 4 * 256;
    options.step_sequences = kSequences;
    return options;
  }

  int Below(int n) { return static_cast<int>(random_() % n); }

  // Prompts share beginnings of a few texts.
  void Open() {
    const int from = Below(kTexts);
    std::vector<int32_t> prompt = Text(1 + Below(700), from);
    const std::vector<int32_t> own = Text(1 + Below(60), static_cast<int>(random_() % 100000));
    prompt.insert(prompt.end(), own.begin(), own.end());
    const Reuse reuse = Below(2) == 0 ? Reuse::kAny : Reuse::kPrefillMade;
    CacheSequence sequence = driver_.cache()->Open(prompt, reuse);
    const int64_t found = sequence.tokens();
    lives_.push_back({std::move(sequence), found > 0});
    if (Below(4) > 0) {
      const std::vector<int32_t> rest(prompt.begin() + found, prompt.end());
      ASSERT_TRUE(driver_.Step({{&lives_.back().sequence, rest, CacheStep::kPrefill}}));
      lives_.back().found = false;
    }
  }

  void Step() {
    std::vector<Driver::Feed> feeds;
    for (Life& life : lives_) {
      const int64_t room = kLongest - life.sequence.tokens();
      if (room == 0 || Below(4) == 0) continue;
      const bool prefill = life.sequence.tokens() % 64 == 0 && Below(3) > 0;
      const int tokens = prefill ? 1 + Below(static_cast<int>(std::min<int64_t>(room, 256))) : 1;
      feeds.push_back({&life.sequence, Text(tokens, static_cast<int>(random_() % 100000)),
                       prefill ? CacheStep::kPrefill : CacheStep::kDecode});
      life.found = false;
    }
    ASSERT_TRUE(driver_.Step(feeds));
  }

  // The budget counts exactly the different blocks of living sequences.
  void CheckBytes() {
    int64_t blocks = 0;
    for (int strip = 0; strip < static_cast<int>(driver_.shape().strips.size()); ++strip) {
      std::set<int32_t> different;
      for (const Life& life : lives_) {
        const std::vector<int32_t>& ids = life.sequence.blocks(strip).blocks;
        different.insert(ids.begin(), ids.end());
        ASSERT_LE(static_cast<int64_t>(ids.size()),
                  driver_.shape().Blocks(strip, life.sequence.tokens()));
      }
      blocks += static_cast<int64_t>(different.size());
    }
    const int64_t rows = blocks * driver_.shape().BlockBytes();
    ASSERT_GE(budget_.used(), rows);
    ASSERT_LE(budget_.used(),
              rows + static_cast<int64_t>(lives_.size()) * driver_.shape().StateBytes());
    ASSERT_LE(budget_.used(), budget_.capacity());
    ASSERT_LE(budget_.used() + budget_.evictable() + budget_.idle(),
              budget_.capacity() + budget_.headroom());
    ASSERT_GE(budget_.evictable(), 0);
    ASSERT_GE(budget_.idle(), 0);
  }

  std::mt19937 random_;
  CacheBudget budget_;
  Driver driver_;
  std::vector<Life> lives_;
};

class RandomLives : public ::testing::TestWithParam<int> {};

TEST_P(RandomLives, KeepEveryRow) {
  CacheShape shapes[] = {SmallShape(128, 16, 1), SmallShape(100, 48, 3, DType::kBFloat16),
                         SmallShape(0, 16, 1), SmallShape(70, 1, 0), SmallShape(0, 1, 0)};
  CacheShape& shape = shapes[GetParam() % std::size(shapes)];
  // The last ones in memory that the host cannot read.
  if (GetParam() >= kOnHost) shape.form = BlockForm::kRows;
  Zoo zoo(shape, GetParam());
  for (int turn = 0; turn < 1200 && !::testing::Test::HasFatalFailure(); ++turn) {
    zoo.Turn();
    if (turn % 20 == 0) zoo.CheckRows();
  }
  zoo.CheckRows();
  EXPECT_GT(zoo.stats().hits, 0);
  EXPECT_GT(zoo.stats().evictions, 0);
  zoo.End();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLives, ::testing::Range(0, kOnHost + 5));

}  // namespace
}  // namespace longview::kernels
