#include "models/feature_maps/shape_cache.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace {

std::atomic<size_t> live_bytes = 0;

}  // namespace

// NOLINTBEGIN: the whole program's memory is counted.
void* operator new(size_t bytes) {
  void* const at = std::malloc(bytes);
  if (at == nullptr) throw std::bad_alloc();
  live_bytes += malloc_usable_size(at);
  return at;
}
void operator delete(void* at) noexcept {
  live_bytes -= malloc_usable_size(at);
  std::free(at);
}
void operator delete(void* at, size_t) noexcept { operator delete(at); }
// NOLINTEND

namespace longview::models {
namespace {

using Numbers = std::vector<float>;

struct Number {
  size_t value;
};
size_t BytesOf(const Number&) { return 0; }

ShapeCache::Key KeyOf(ImageSize map) { return ShapeKey(ShapeKind::kMapWeights, 0, {&map, 1}); }

TEST(ShapeCacheTest, EveryNumberOfAShapeCounts) {
  const ImageSize maps[] = {{2, 3}, {4, 5}};
  const std::span<const ImageSize> both(maps);
  const ShapeCache::Key keys[] = {ShapeKey(ShapeKind::kBandPlan, 1, both),
                                  ShapeKey(ShapeKind::kSlicePlan, 1, both),
                                  ShapeKey(ShapeKind::kBandPlan, 2, both),
                                  ShapeKey(ShapeKind::kBandPlan, 1, both.first(1)),
                                  ShapeKey(ShapeKind::kBandPlan, 1, both.last(1)),
                                  ShapeKey(ShapeKind::kBandPlan, 1, both, {1, 0}),
                                  ShapeKey(ShapeKind::kBandPlan, 1, both, {0, 1})};
  ShapeCache cache;
  for (size_t i = 0; i < std::size(keys); ++i) cache.Of<Number>(keys[i], [&] { return Number{i}; });
  for (size_t i = 0; i < std::size(keys); ++i) {
    EXPECT_EQ(cache.Of<Number>(keys[i], [] { return Number{99}; })->value, i);
  }
}

TEST(ShapeCacheTest, WhatWasNotAskedForLongestGoesAndWhoHasItKeepsIt) {
  constexpr size_t kFloats = 10000;
  ShapeCache cache(2 * kFloats * sizeof(float) + 2000);
  int made = 0;
  const auto ask = [&](ImageSize map) {
    return cache.Of<Numbers>(KeyOf(map), [&] {
      ++made;
      return Numbers(kFloats, static_cast<float>(map.height));
    });
  };
  ask({1, 1});
  const auto second = ask({2, 1});
  ask({1, 1});
  EXPECT_EQ(made, 2);
  EXPECT_GE(cache.bytes(), 2 * kFloats * sizeof(float));
  ask({3, 1});  // The second goes.
  EXPECT_LE(cache.bytes(), 2 * kFloats * sizeof(float) + 2000);
  EXPECT_EQ(second->back(), 2);
  ask({1, 1});
  EXPECT_EQ(made, 3);
  EXPECT_NE(ask({2, 1}), second);
  EXPECT_EQ(made, 4);
}

// An allocator gives up to 24 bytes more than it was asked for: for a key, a place in each of map
// and order, and what a shared_ptr was made with, twice.
constexpr size_t kRounded = 5 * 24;

TEST(ShapeCacheTest, BytesAreThoseThatTheAllocatorGave) {
  using Lists = std::vector<std::vector<int32_t>>;
  constexpr size_t kCount = 100;
  for (const size_t bound : {ShapeCache::kMostBytes, size_t{20000}}) {
    ShapeCache cache(bound);
    const size_t before = live_bytes;
    for (int side = 1; side <= int{kCount}; ++side) {
      cache.Of<Number>(KeyOf({side, 1}), [] { return Number{1}; });
      cache.Of<Numbers>(KeyOf({side, 2}), [&] { return Numbers(16 * side); });
      cache.Of<Lists>(KeyOf({side, 3}), [&] { return Lists(4, std::vector<int32_t>(8 * side)); });
    }
    const size_t live = live_bytes - before;
    EXPECT_LE(cache.bytes(), bound);
    EXPECT_LE(cache.bytes(), live);
    // Beside the five of each entry, lists are in five more.
    EXPECT_GE(cache.bytes() + cache.size() * 2 * kRounded, live);
    EXPECT_EQ(cache.size() == 3 * kCount, bound == ShapeCache::kMostBytes);
  }
}

TEST(ShapeCacheTest, ManySizesStayBelowTheBoundAndTheLatestAreThere) {
  constexpr size_t kBound = 10000;
  ShapeCache cache(kBound);
  std::vector<int> made(2001);
  const auto ask = [&](int side) {
    cache.Of<Numbers>(KeyOf({side, 1}), [&] {
      ++made[static_cast<size_t>(side)];
      return Numbers(20);
    });
  };
  size_t most = 0;
  for (int side = 1; side <= 2000; ++side) {
    ask(side);
    ask(1);
    most = std::max(most, cache.bytes());
    ASSERT_LE(cache.bytes(), kBound);
  }
  EXPECT_GT(most, kBound - kBound / 20);
  EXPECT_EQ(made[1], 1) << "used all the time";
  const int kept = static_cast<int>(cache.size());
  ASSERT_GT(kept, 10);
  // The last ones but for the one that is used all the time.
  for (int side = 2000; side > 2001 - kept; --side) ask(side);
  for (int side = 2; side <= 2000; ++side) EXPECT_EQ(made[static_cast<size_t>(side)], 1) << side;
  ask(2001 - kept);
  EXPECT_EQ(made[static_cast<size_t>(2001 - kept)], 2);
}

TEST(ShapeCacheTest, NothingIsKeptWithoutRoom) {
  ShapeCache cache(0);
  int made = 0;
  for (int i = 0; i < 3; ++i) {
    const auto got =
        cache.Of<Number>(KeyOf({1, 1}), [&] { return Number{static_cast<size_t>(++made)}; });
    EXPECT_EQ(got->value, static_cast<size_t>(made));
    EXPECT_EQ(cache.bytes(), 0u);
    EXPECT_EQ(cache.size(), 0u);
  }
  EXPECT_EQ(made, 3);
}

TEST(ShapeCacheTest, AValueLargerThanTheCacheLeavesTheOthersAlone) {
  ShapeCache cache(1000);
  int made = 0;
  const auto ask = [&](ImageSize map, size_t floats) {
    return cache.Of<Numbers>(KeyOf(map), [&] {
      ++made;
      return Numbers(floats);
    });
  };
  ask({1, 1}, 10);
  const size_t before = cache.bytes();
  EXPECT_EQ(ask({2, 2}, 1000)->size(), 1000u);
  EXPECT_EQ(cache.bytes(), before);
  ask({1, 1}, 10);
  EXPECT_EQ(made, 2);
}

TEST(ShapeCacheTest, AFailureIsTheCallersAndIsNotKept) {
  ShapeCache cache;
  const auto fail = []() -> Number { throw std::bad_alloc(); };
  EXPECT_THROW(cache.Of<Number>(KeyOf({1, 1}), fail), std::bad_alloc);
  EXPECT_EQ(cache.Of<Number>(KeyOf({1, 1}), [] { return Number{7}; })->value, 7u);
}

TEST(ShapeCacheTest, FailuresLeaveNothingBehind) {
  ShapeCache cache;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int side = 1; side < 500; ++side) {
        const auto fail = []() -> Number { throw std::bad_alloc(); };
        EXPECT_THROW(cache.Of<Number>(KeyOf({side, 1}), fail), std::bad_alloc);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.bytes(), 0u);
  cache.Of<Number>(KeyOf({1, 1}), [] { return Number{7}; });
  EXPECT_EQ(cache.size(), 1u);
}

TEST(ShapeCacheTest, OneThreadMakesWhatManyAskFor) {
  ShapeCache cache;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int side = 1; side < 200; ++side) {
        const auto got = cache.Of<Numbers>(KeyOf({side, side}), [&] {
          ++made;
          // Making one may ask for another.
          const auto inner = cache.Of<Number>(KeyOf({side, 0}), [&] {
            ++made;
            return Number{static_cast<size_t>(side)};
          });
          return Numbers(100, static_cast<float>(inner->value));
        });
        ASSERT_EQ(got->back(), static_cast<float>(side));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 2 * 199);
}

TEST(ShapeCacheTest, ThreadsThatThrowOutEachOthersValuesGetTheirOwn) {
  ShapeCache cache(3000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 2000; ++i) {
        const int side = (i * (t + 1)) % 7 + 1;
        const auto got = cache.Of<Numbers>(KeyOf({side, side}),
                                           [&] { return Numbers(200, static_cast<float>(side)); });
        ASSERT_EQ(got->back(), static_cast<float>(side));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.bytes(), 3000u);
}

}  // namespace
}  // namespace longview::models
