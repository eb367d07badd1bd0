// Finding again what was read before, and giving it up when memory is needed.
#include "kernels/cache/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cache/driver.h"

namespace longview::kernels {
namespace {

using testing::Driver;
using testing::SmallShape;
using testing::Text;

constexpr int64_t kPlenty = int64_t{1} << 30;

std::vector<int32_t> Joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Reads a text by prefill, caches it as a prefix and forgets the sequence.
void CacheText(Driver* driver, const std::vector<int32_t>& text) {
  CacheSequence sequence = driver->New();
  driver->Prefill(&sequence, text);
  sequence.CachePrefix();
}

TEST(Prefix, AnEmptyCacheAndAnEmptyPromptFindNothing) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(100, 16, 1), &budget);
  EXPECT_EQ(driver.cache()->Open({}, Reuse::kAny).tokens(), 0);
  EXPECT_EQ(driver.cache()->Open(Text(500), Reuse::kAny).tokens(), 0);
  CacheText(&driver, Text(63));  // Shorter than the alignment.
  EXPECT_EQ(driver.cache()->Open(Text(500), Reuse::kAny).tokens(), 0);
}

TEST(Prefix, ResumesAtTheLastPointBeforeTheLastToken) {
  for (const int segment : {16, 48}) {
    for (const int tokens : {64, 65, 192, 193, 200, 384, 1000}) {
      CacheBudget budget(kPlenty);
      Driver driver(SmallShape(100, segment, 1), &budget);
      const int alignment = driver.shape().prefill_alignment();
      CacheText(&driver, Text(tokens));
      EXPECT_EQ(driver.cache()->Find(Joined(Text(tokens), {1}), Reuse::kPrefillMade),
                tokens / alignment * alignment);
      EXPECT_EQ(driver.cache()->Find(Text(tokens), Reuse::kPrefillMade),
                (tokens - 1) / alignment * alignment);
      std::vector<int32_t> other = Text(tokens);
      other[0] ^= 1;
      EXPECT_EQ(driver.cache()->Find(other, Reuse::kAny), 0);
    }
  }
}

TEST(Prefix, GoesOnAsIfItHadReadEverything) {
  const int windows[] = {0, 1, 64, 100, 512};
  for (const int window : windows) {
    for (const int rank : {0, 1, 3}) {
      CacheBudget budget(kPlenty);
      Driver driver(SmallShape(window, 16, rank), &budget);
      CacheText(&driver, Text(1000));
      const std::vector<int32_t> prompt = Joined(Text(980), Text(200, 5));
      CacheSequence sequence = driver.cache()->Open(prompt, Reuse::kPrefillMade);
      ASSERT_EQ(sequence.tokens(), 960) << window << " " << rank;
      driver.Check(sequence, /*found=*/true);
      driver.Prefill(&sequence, std::span(prompt).subspan(960));
      driver.Check(sequence);
      driver.Decode(&sequence, Text(70, 6));
      driver.Check(sequence);
      CacheSequence again = driver.cache()->Open(Text(1000), Reuse::kPrefillMade);
      ASSERT_EQ(again.tokens(), 960);
      driver.Check(again, /*found=*/true);
    }
  }
}

TEST(Prefix, ASpaceFindsItsOwnAlone) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(100, 16, 1), &budget);
  const std::vector<int32_t> text = Text(650);
  CacheSequence sequence = driver.New();
  driver.Prefill(&sequence, text);
  sequence.CachePrefix(/*space=*/1);
  EXPECT_EQ(driver.cache()->Find(text, Reuse::kAny, /*space=*/1), 640);
  for (const uint64_t other : {0, 2}) {
    EXPECT_EQ(driver.cache()->Find(text, Reuse::kAny, other), 0);
    EXPECT_EQ(driver.cache()->Open(text, Reuse::kAny, other).tokens(), 0);
  }
  // Each keeps the same text for itself; what one lets go of stays the other's.
  sequence.CachePrefix(/*space=*/2);
  EXPECT_EQ(driver.cache()->Find(text, Reuse::kAny, /*space=*/1), 640);
  EXPECT_EQ(driver.cache()->Open(text, Reuse::kAny, /*space=*/2).tokens(), 640);
  EXPECT_EQ(driver.cache()->Find(text, Reuse::kAny), 0);
}

TEST(Prefix, SpacesWhoseHashesMeetStayApart) {
  ProjectionCache::Options options;
  options.hash = [](uint64_t, std::span<const int32_t>) -> uint64_t { return 7; };
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(100, 16, 1), &budget, options);
  CacheSequence sequence = driver.New();
  driver.Prefill(&sequence, Text(300));
  sequence.CachePrefix(/*space=*/1);
  EXPECT_EQ(driver.cache()->Find(Text(300), Reuse::kAny, /*space=*/2), 0);
  EXPECT_EQ(driver.cache()->Find(Text(300), Reuse::kAny, /*space=*/1), 256);
}

TEST(Prefix, TheStateOfAFoundPrefixIsEmpty) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(100, 16, 1), &budget);
  CacheText(&driver, Text(200));
  CacheSequence sequence = driver.cache()->Open(Text(200), Reuse::kAny);
  CacheStep step(driver.cache());
  ASSERT_TRUE(step.Append(CacheStep::kDecode, &sequence, Text(1)));
  for (int layer = 0; layer < driver.shape().layers; ++layer) {
    const PoolState state = driver.cache()->State(sequence, layer);
    for (int c = 0; c < driver.shape().pool_columns; ++c) {
      EXPECT_EQ(state.m[c], -INFINITY);
      EXPECT_EQ(state.s[c], 0.0f);
    }
  }
}

TEST(Prefix, TheLongestIsFoundAndTheyShareBlocks) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(64, 16, 1), &budget);
  const std::vector<int32_t> text = Text(2048);
  CacheSequence sequence = driver.New();
  int64_t before = 0;
  for (const int end : {512, 1024, 1536, 2048}) {
    driver.Prefill(&sequence, std::span(text).subspan(sequence.tokens(), end - sequence.tokens()));
    sequence.CachePrefix();
    EXPECT_EQ(driver.cache()->Find(text, Reuse::kPrefillMade), end == 2048 ? 1984 : end);
    EXPECT_EQ(driver.cache()->Find(std::span(text).first(end - 10), Reuse::kPrefillMade), end - 64);
    // Each point adds a window and, of its pages, at most the block that another may go on with.
    const int64_t held = budget.used() + budget.evictable();
    EXPECT_LE(held - before, 8 * driver.shape().BlockBytes());
    before = held;
  }
}

TEST(Prefix, AConversationGoesOnFromWhatDecodingMade) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(100, 16, 1), &budget);
  const std::vector<int32_t> text = Text(400);
  CacheSequence sequence = driver.New();
  driver.Prefill(&sequence, std::span(text).first(200));
  driver.Decode(&sequence, std::span(text).subspan(200));
  sequence.CachePrefix();
  EXPECT_EQ(driver.cache()->Find(text, Reuse::kAny), 384);
  EXPECT_EQ(driver.cache()->Find(text, Reuse::kPrefillMade), 0);
  // A continuation of it was not made by prefill alone either.
  CacheSequence more = driver.cache()->Open(text, Reuse::kAny);
  driver.Prefill(&more, Text(256, 3));
  more.CachePrefix();
  const std::vector<int32_t> longer =
      Joined(Joined({text.begin(), text.begin() + 384}, Text(256, 3)), {1});
  EXPECT_EQ(driver.cache()->Find(longer, Reuse::kAny), 640);
  EXPECT_EQ(driver.cache()->Find(longer, Reuse::kPrefillMade), 0);
  // Reading it anew takes its place.
  CacheText(&driver, text);
  EXPECT_EQ(driver.cache()->Find(text, Reuse::kPrefillMade), 384);
}

TEST(Prefix, DecodingNeverReplacesWhatPrefillMade) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(100, 16, 1), &budget);
  CacheText(&driver, Text(300));
  CacheSequence sequence = driver.New();
  driver.Decode(&sequence, Text(300));
  sequence.CachePrefix();
  EXPECT_EQ(driver.cache()->Find(Text(300), Reuse::kPrefillMade), 256);
}

TEST(Prefix, PointsBeforeTheBorderOfDecodingCountAsPrefill) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(100, 16, 1), &budget);
  CacheSequence sequence = driver.New();
  driver.Prefill(&sequence, Text(260));
  driver.Decode(&sequence, Text(40, 1));
  sequence.CachePrefix();
  EXPECT_EQ(driver.cache()->Find(Text(300), Reuse::kPrefillMade), 256);
}

uint64_t OneForAll(uint64_t, std::span<const int32_t>) { return 7; }

TEST(Prefix, ACollisionFindsNothingWrong) {
  CacheBudget budget(kPlenty);
  ProjectionCache::Options options;
  options.hash = OneForAll;
  Driver driver(SmallShape(100, 16, 1), &budget, options);
  for (int seed = 0; seed < 20; ++seed) CacheText(&driver, Text(300 + seed, seed));
  EXPECT_EQ(driver.cache()->Find(Text(500, 99), Reuse::kAny), 0);
  for (int seed = 0; seed < 20; ++seed) {
    const CacheSequence found = driver.cache()->Open(Text(500, seed), Reuse::kPrefillMade);
    EXPECT_EQ(found.tokens(), (300 + seed) / 64 * 64);
    driver.Check(found, /*found=*/true);
  }
}

TEST(Prefix, SaltsNeverMeet) {
  EXPECT_NE(HashTokens(1, Text(64)), HashTokens(2, Text(64)));
  EXPECT_NE(HashTokens(HashTokens(1, Text(64)), Text(64, 1)),
            HashTokens(HashTokens(1, Text(64, 1)), Text(64)));
}

// Room for `entries` cached texts of 640 tokens beside one running sequence of as many.
int64_t RoomFor(const CacheShape& shape, int entries) {
  return (entries + 1) * shape.SequenceBytes(0, 640, 1);
}

TEST(Eviction, LeastRecentlyFoundFirst) {
  const CacheShape shape = SmallShape(128, 16, 1);
  CacheBudget budget(RoomFor(shape, 4));
  Driver driver(shape, &budget);
  for (int seed = 0; seed < 4; ++seed) CacheText(&driver, Text(650, seed));
  for (int seed = 0; seed < 4; ++seed) {
    ASSERT_EQ(driver.cache()->Find(Text(650, seed), Reuse::kAny), 640) << seed;
  }
  (void)driver.cache()->Open(Text(650, 0), Reuse::kAny);
  int next = 4;
  std::vector<int> gone;
  while (gone.size() < 4 && next < 40) {
    CacheText(&driver, Text(650, next++));
    for (int seed : {0, 1, 2, 3}) {
      const bool found = driver.cache()->Find(Text(650, seed), Reuse::kAny) > 0;
      if (!found && std::ranges::count(gone, seed) == 0) gone.push_back(seed);
    }
  }
  EXPECT_EQ(gone, (std::vector<int>{1, 2, 3, 0}));
  EXPECT_GE(driver.cache()->stats().evictions, 4);
}

TEST(Eviction, NeverWhatASequenceUses) {
  const CacheShape shape = SmallShape(128, 16, 1);
  CacheBudget budget(RoomFor(shape, 2));
  Driver driver(shape, &budget);
  CacheText(&driver, Text(650));
  const CacheSequence user = driver.cache()->Open(Text(650), Reuse::kPrefillMade);
  ASSERT_EQ(user.tokens(), 640);
  for (int seed = 1; seed < 12; ++seed) {
    CacheText(&driver, Text(650, seed));
    driver.Check(user, /*found=*/true);
  }
  EXPECT_EQ(driver.cache()->Find(Text(650), Reuse::kPrefillMade), 640);
}

TEST(Eviction, GivesWayToWhatWasReserved) {
  const CacheShape shape = SmallShape(100, 16, 1);
  CacheBudget budget(3 * shape.SequenceBytes(0, 700, 1));
  Driver driver(shape, &budget);
  for (int seed = 0; seed < 10; ++seed) CacheText(&driver, Text(650, seed));
  EXPECT_EQ(budget.used(), 0);
  EXPECT_GT(budget.evictable(), 0);
  std::vector<CacheSequence> running;
  for (int i = 0; i < 3; ++i) {
    running.push_back(driver.New());
    driver.Prefill(&running.back(), Text(700, 100 + i));
    EXPECT_LE(budget.used() + budget.evictable() + budget.idle(),
              budget.capacity() + budget.headroom());
  }
  EXPECT_EQ(budget.used(), budget.capacity());
  for (const CacheSequence& sequence : running) driver.Check(sequence);
}

TEST(Eviction, IdsOfEntriesCountAndGiveWay) {
  const CacheShape shape = SmallShape(100, 16, 1);
  constexpr int kSpaces = 2000;
  const int64_t one = shape.SequenceBytes(0, 700, 1), ids = 640 * int64_t{sizeof(int32_t)};
  CacheBudget budget(3 * one);
  ASSERT_GT(kSpaces * ids, budget.capacity());
  Driver driver(shape, &budget);
  CacheSequence sequence = driver.New();
  driver.Prefill(&sequence, Text(650));
  const int64_t used = budget.used();
  // All blocks are the sequence's.
  sequence.CachePrefix(1);
  EXPECT_GE(budget.evictable(), ids);
  EXPECT_LE(budget.evictable(), ids + 1000);
  for (uint64_t space = 2; space <= kSpaces; ++space) {
    sequence.CachePrefix(space);
    ASSERT_LE(budget.used() + budget.evictable() + budget.idle(), budget.capacity());
  }
  EXPECT_EQ(budget.used(), used);
  EXPECT_EQ(driver.cache()->Find(Text(650), Reuse::kAny, kSpaces), 640);
  EXPECT_EQ(driver.cache()->Find(Text(650), Reuse::kAny, 1), 0) << "gave way to the later ones";
  // Reserved bytes are there, though no entry has a block that nobody uses.
  std::vector<CacheSequence> running;
  for (int i = 0; i < 2; ++i) {
    running.push_back(driver.New());
    driver.Prefill(&running.back(), Text(700, 100 + i));
  }
  for (const CacheSequence& other : running) driver.Check(other);
  driver.Check(sequence);
}

TEST(Eviction, TwoCachesShareOneBudget) {
  const CacheShape small = SmallShape(100, 16, 1);
  CacheShape large = SmallShape(200, 16, 2);
  large.layers = 3;
  CacheBudget budget(4 * large.SequenceBytes(0, 700, 1));
  Driver first(small, &budget);
  {
    Driver second(large, &budget);
    EXPECT_EQ(budget.headroom(), small.StepBytes(256, 2) + large.StepBytes(256, 2));
    for (int seed = 0; seed < 40; ++seed) CacheText(&first, Text(650, seed));
    const int64_t kept = first.cache()->Find(Text(650, 39), Reuse::kAny);
    EXPECT_EQ(kept, 640);
    // The second takes all there is: idle memory and entries of the first.
    std::vector<CacheSequence> running;
    for (int i = 0; i < 4; ++i) {
      running.push_back(second.New());
      second.Prefill(&running.back(), Text(700, i));
      ASSERT_LE(budget.used() + budget.evictable() + budget.idle(),
                budget.capacity() + budget.headroom());
    }
    for (const CacheSequence& sequence : running) second.Check(sequence);
    EXPECT_GT(first.cache()->stats().evictions, 0);
    running.clear();
    // And gives it back to the first.
    for (int seed = 0; seed < 40; ++seed) CacheText(&first, Text(650, seed));
    const CacheSequence found = first.cache()->Open(Text(650, 39), Reuse::kAny);
    first.Check(found, /*found=*/true);
  }
  EXPECT_EQ(budget.headroom(), small.StepBytes(256, 2));
  EXPECT_LE(budget.used() + budget.evictable() + budget.idle(),
            budget.capacity() + budget.headroom());
}

// Nothing is left to evict, and a sequence goes on in a block that only an entry shares.
TEST(Eviction, ASequenceGoesOnFromAPrefixInAFullCache) {
  const CacheShape shape = SmallShape(100, 16, 1);
  ProjectionCache::Options options;
  options.step_tokens = 256;
  options.step_sequences = 2;
  CacheBudget budget(2 * shape.SequenceBytes(0, 1000, 1));
  auto cache = ProjectionCache::Create(shape, options, &budget);
  testing::Writer writer(cache.get());
  const auto read = [&](CacheSequence* sequence, const std::vector<int32_t>& ids) {
    for (size_t at = 0; at < ids.size(); at += 256) {
      CacheStep step(cache.get());
      const auto part = std::span(ids).subspan(at, std::min<size_t>(256, ids.size() - at));
      const int64_t before = sequence->tokens();
      ASSERT_TRUE(step.Append(CacheStep::kPrefill, sequence, part));
      const CacheSequence* one[] = {sequence};
      writer.Write(step, CacheStep::kPrefill, one, std::span(&before, 1));
    }
  };
  CacheSequence first(cache.get());
  read(&first, Text(330));
  first.CachePrefix();
  first = CacheSequence();
  CacheSequence full(cache.get());
  read(&full, Text(1000, 1));
  CacheSequence resumed = cache->Open(Text(330), Reuse::kPrefillMade);
  ASSERT_EQ(resumed.tokens(), 320);
  read(&resumed, Text(680, 2));
  writer.Check(full);
  writer.Check(resumed);
  EXPECT_EQ(budget.used(), budget.capacity());
}

}  // namespace
}  // namespace longview::kernels
