// Caches of several models in one memory: whose bytes are counted where, who makes way for whom,
// and what is left when one of them goes while the others are at work.
#include "kernels/cache/cache_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/kernels/cache/driver.h"

namespace longview::kernels {
namespace {

using testing::Driver;
using testing::SmallShape;
using testing::Text;

CacheShape LargeShape() {
  CacheShape shape = SmallShape(200, 16, 2);
  shape.layers = 3;
  return shape;
}

// A model's cache, with the part of a memory that is counted as its own.
struct Cached {
  Cached(const CacheShape& shape, CacheMemory& memory) : budget(memory), driver(shape, &budget) {}

  void CachePrefix(int seed) {
    CacheSequence sequence = driver.New();
    driver.Prefill(&sequence, Text(650, seed));
    sequence.CachePrefix();
  }

  CacheBudget budget;
  Driver driver;
};

void ExpectEmpty(const CacheMemory& memory) {
  EXPECT_EQ(memory.used(), 0);
  EXPECT_EQ(memory.evictable(), 0);
  EXPECT_EQ(memory.idle(), 0);
  EXPECT_EQ(memory.headroom(), 0);
}

TEST(SharedMemory, EveryModelCountsItsOwn) {
  CacheMemory memory(int64_t{1} << 30);
  {
    Cached first(SmallShape(100, 16, 1), memory), second(LargeShape(), memory);
    CacheSequence one = first.driver.New(), other = second.driver.New();
    first.driver.Prefill(&one, Text(650, 1));
    second.driver.Prefill(&other, Text(300, 2));
    other.CachePrefix();
    EXPECT_EQ(first.budget.used(), first.driver.shape().SequenceBytes(0, 650, 1));
    EXPECT_EQ(second.budget.used(), second.driver.shape().SequenceBytes(0, 300, 1));
    EXPECT_EQ(memory.used(), first.budget.used() + second.budget.used());
    other = CacheSequence();
    EXPECT_EQ(second.budget.used(), 0);
    EXPECT_GT(second.budget.evictable(), 0);
    EXPECT_EQ(first.budget.evictable(), 0);
    EXPECT_EQ(memory.evictable(), second.budget.evictable());
    EXPECT_EQ(memory.idle(), first.budget.idle() + second.budget.idle());
    EXPECT_EQ(memory.headroom(), first.budget.headroom() + second.budget.headroom());
  }
  ExpectEmpty(memory);
}

TEST(SharedMemory, WhatOneKeepsMakesWayForWhatAnotherReserved) {
  const CacheShape large = LargeShape();
  CacheMemory memory(4 * large.SequenceBytes(0, 700, 1));
  Cached first(SmallShape(100, 16, 1), memory), second(large, memory);
  for (int seed = 0; seed < 40; ++seed) first.CachePrefix(seed);
  ASSERT_GT(first.budget.evictable(), 0);
  std::vector<CacheSequence> running;
  for (int i = 0; i < 4; ++i) {
    running.push_back(second.driver.New());
    second.driver.Prefill(&running.back(), Text(700, i));
    ASSERT_LE(memory.used() + memory.evictable() + memory.idle(),
              memory.capacity() + second.budget.headroom());
  }
  EXPECT_EQ(second.budget.used(), memory.capacity());
  EXPECT_EQ(memory.used(), memory.capacity());
  EXPECT_EQ(second.budget.Room(), second.budget.headroom());
  EXPECT_EQ(first.driver.cache()->Find(Text(650, 39), Reuse::kAny), 0);
  for (const CacheSequence& sequence : running) second.driver.Check(sequence);
}

TEST(SharedMemory, AModelThatGoesGivesAllOfItsBytesBack) {
  const CacheShape large = LargeShape();
  CacheMemory memory(4 * large.SequenceBytes(0, 700, 1));
  auto first = std::make_unique<Cached>(SmallShape(100, 16, 1), memory);
  Cached second(large, memory);
  const int64_t headroom = second.budget.headroom();
  for (int seed = 0; seed < 40; ++seed) first->CachePrefix(seed);
  CacheSequence running = second.driver.New();
  second.driver.Prefill(&running, Text(700, 1));
  first.reset();
  EXPECT_EQ(memory.used(), second.budget.used());
  EXPECT_EQ(memory.evictable(), 0);
  EXPECT_EQ(memory.idle(), second.budget.idle());
  EXPECT_EQ(memory.headroom(), headroom);
  second.driver.Check(running);
}

// Each model has a thread, as on devices of their own; another comes and goes meanwhile. Nobody
// finds another's rows in its own, and nobody who reserved is refused.
TEST(SharedMemory, ModelsOfSeveralThreadsComeAndGo) {
  constexpr int kLives = 60;
  const CacheShape large = LargeShape();
  // For one sequence of each of three, and for what is kept until one of them needs it.
  CacheMemory memory(4 * large.SequenceBytes(0, 700, 1));
  std::atomic<int> at_work{2};
  const auto live = [&](const CacheShape& shape, int seeds) {
    Cached model(shape, memory);
    for (int i = 0; i < kLives; ++i) {
      const int seed = seeds + i % 5;
      CacheSequence sequence = model.driver.cache()->Open(Text(700, seed), Reuse::kAny);
      const bool found = sequence.tokens() > 0;
      const std::vector<int32_t> text = Text(700, seed);
      model.driver.Prefill(&sequence, std::span(text).subspan(sequence.tokens()));
      model.driver.Check(sequence, found);
      sequence.CachePrefix();
    }
    --at_work;
  };
  std::thread small_one([&] { live(SmallShape(100, 16, 1), 0); });
  std::thread large_one([&] { live(large, 100); });
  do {
    Cached guest(SmallShape(64, 16, 2), memory);
    for (int seed = 200; seed < 204; ++seed) guest.CachePrefix(seed);
  } while (at_work > 0);
  small_one.join();
  large_one.join();
  ExpectEmpty(memory);
}

}  // namespace
}  // namespace longview::kernels
