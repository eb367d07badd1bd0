#include "models/vision/shape_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace longview::models {
namespace {

using Numbers = std::vector<float>;

struct Number {
  size_t value;
};
size_t BytesOf(const Number&) { return sizeof(Number); }

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
