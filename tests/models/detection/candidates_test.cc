#include "models/detection/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace longview::models {
namespace {

TEST(TopLogitsTest, TheHighestAndOfEqualOnesTheFirst) {
  std::mt19937 random(2);
  std::uniform_int_distribution<int> level(-20, 20);  // Many equal values.
  std::vector<float> values(20000);
  for (float& value : values) value = static_cast<float>(level(random));
  values[7] = NAN;
  for (const size_t limit : {1u, 10u, 1000u, 30000u}) {
    TopLogits top(limit, -5.5f);
    for (size_t at = 0; at < values.size(); at += 100) {
      top.Offer(values.data() + at, 100, static_cast<int64_t>(at));
    }
    std::vector<int64_t> want;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] > -5.5f) want.push_back(static_cast<int64_t>(i));
    }
    std::stable_sort(want.begin(), want.end(),
                     [&](int64_t a, int64_t b) { return values[a] > values[b]; });
    want.resize(std::min(want.size(), limit));
    std::vector<int64_t> got;
    for (const TopLogits::Entry& entry : top.Take()) got.push_back(entry.index);
    EXPECT_EQ(got, want) << limit;
  }
}

TEST(KeepBestTest, GroupsSuppressOnlyThemselves) {
  const Box box = {0, 0, 10, 10};
  const std::vector<ScoredBox> kept =
      KeepBest({{box, 0.5f, 1, 0}, {box, 0.9f, 2, 1}, {box, 0.7f, 1, 2}}, 0.5f, 10);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].source, 1);
  EXPECT_EQ(kept[1].source, 2);
}

TEST(KeepBestTest, EqualScoresKeepTheirOrderAndTheLimitHolds) {
  std::vector<ScoredBox> boxes;
  for (int i = 0; i < 5; ++i) {
    const float x = 20.0f * static_cast<float>(i);
    boxes.push_back({{x, 0, x + 10, 10}, 0.5f, i % 2, i});
  }
  const std::vector<ScoredBox> kept = KeepBest(boxes, 0.5f, 3);
  ASSERT_EQ(kept.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(kept[i].source, i);
}

}  // namespace
}  // namespace longview::models
