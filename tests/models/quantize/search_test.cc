// The order of trials and what is kept, with a loader that only counts.
#include "models/quantize/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "models/quantize/damage.h"

namespace longview::models {
namespace {

using ::testing::ElementsAre;

// A model of which int8 breaks the linears before `bad`, by damage.
struct FakeLoader {
  size_t bad;
  std::vector<size_t> loads = {};

  absl::StatusOr<std::optional<size_t>> LeastKeptOf(size_t all) {
    return LeastKept(all, [this](size_t kept) -> absl::StatusOr<bool> {
      loads.push_back(kept);
      return kept >= bad;
    });
  }
};

TEST(LeastKeptTest, OneBadLinearIsKeptAlone) {
  FakeLoader loader{.bad = 1};
  EXPECT_EQ(*loader.LeastKeptOf(100), 1u);
  EXPECT_THAT(loader.loads, ElementsAre(1));
}

TEST(LeastKeptTest, DoublesThenBisects) {
  FakeLoader loader{.bad = 11};
  EXPECT_EQ(*loader.LeastKeptOf(100), 11u);
  EXPECT_THAT(loader.loads, ElementsAre(1, 2, 4, 8, 16, 12, 10, 11));
}

TEST(LeastKeptTest, FindsEveryNumberAndLoadsNoneTwice) {
  for (size_t all = 1; all < 40; ++all) {
    for (size_t bad = 1; bad <= all; ++bad) {
      FakeLoader loader{.bad = bad};
      ASSERT_EQ(*loader.LeastKeptOf(all), bad) << "of " << all;
      const std::set<size_t> once(loader.loads.begin(), loader.loads.end());
      ASSERT_EQ(once.size(), loader.loads.size());
      ASSERT_LE(*once.rbegin(), all);
    }
  }
}

TEST(LeastKeptTest, NothingWhereNotEvenAllDo) {
  FakeLoader loader{.bad = std::numeric_limits<size_t>::max()};
  EXPECT_EQ(*loader.LeastKeptOf(5), std::nullopt);
  EXPECT_THAT(loader.loads, ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(*loader.LeastKeptOf(0), std::nullopt);
}

TEST(LeastKeptTest, AnErrorEndsIt) {
  const auto fails = [](size_t) -> absl::StatusOr<bool> { return absl::InternalError("broken"); };
  EXPECT_EQ(LeastKept(5, fails).status(), absl::InternalError("broken"));
}

TEST(DamageObserverTest, RanksByNoiseBesideSignal) {
  DamageObserver observer;
  observer.Observe("mild", 100, 1);
  observer.Observe("loud", 1e6, 100);
  observer.Observe("bad", 1, 0.25);
  observer.Observe("mild", 100, 1);
  observer.Observe("exact", 5, 0);
  observer.Observe("also mild", 100, 1);
  std::vector<std::string> names;
  for (const LinearDamage& damage : observer.Ranking()) names.push_back(damage.linear);
  EXPECT_THAT(names, ElementsAre("bad", "also mild", "mild", "loud", "exact"));
  EXPECT_NEAR(observer.Ranking()[0].noise, 0.5, 1e-12);
}

TEST(DamageObserverTest, WhatIsNoNumberIsWorst) {
  DamageObserver observer;
  observer.Observe("a", 1, 100);
  observer.Observe("silent", 0, 1);
  observer.Observe("broken", 1, std::numeric_limits<double>::quiet_NaN());
  std::vector<std::string> names;
  for (const LinearDamage& damage : observer.Ranking()) names.push_back(damage.linear);
  EXPECT_THAT(names, ElementsAre("broken", "silent", "a"));
}

}  // namespace
}  // namespace longview::models
