#include "kernels/pool/column_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace longview::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Weighed {
  int tokens, columns;
  std::vector<float> scores, weights;
  std::vector<uint8_t> visible;

  Weighed(int t, int c, uint32_t seed)
      : tokens(t), columns(c), scores(static_cast<size_t>(t * c)), weights(scores.size(), -1.0f) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 12.0f);
    for (float& score : scores) score = normal(random);
    for (int i = 0; i < t; ++i) visible.push_back(random() % 4 != 0);
  }
  void Run() {
    WeighColumns(
        {scores.data(), columns, visible.data(), tokens, columns, weights.data(), columns});
  }
  double Want(int t, int c) const {
    double top = -1e300, total = 0;
    for (int i = 0; i < tokens; ++i) {
      if (visible[i]) top = std::max<double>(top, scores[i * columns + c]);
    }
    for (int i = 0; i < tokens; ++i) {
      if (visible[i]) total += std::exp(scores[i * columns + c] - top);
    }
    return visible[t] ? std::exp(scores[t * columns + c] - top) / total : 0.0;
  }
};

TEST(ColumnWeightsTest, IsASoftmaxOverTokens) {
  for (const int columns : {1, 5, 16, 21, 48, kWeightColumns}) {
    for (const int tokens : {1, 2, 77, 300}) {
      Weighed weighed(tokens, columns, 7);
      weighed.visible[0] = 1;
      weighed.Run();
      for (int t = 0; t < tokens; ++t) {
        for (int c = 0; c < columns; ++c) {
          ASSERT_NEAR(weighed.weights[t * columns + c], weighed.Want(t, c), 2e-6)
              << columns << " columns, token " << t;
        }
      }
    }
  }
}

TEST(ColumnWeightsTest, AColumnsBitsAreItsOwn) {
  Weighed all(200, kWeightColumns, 3), one(200, 1, 3);
  all.Run();
  one.visible = all.visible;
  for (int c = 0; c < kWeightColumns; ++c) {
    for (int t = 0; t < 200; ++t) one.scores[t] = all.scores[t * kWeightColumns + c];
    one.Run();
    for (int t = 0; t < 200; ++t) {
      ASSERT_EQ(one.weights[t], all.weights[t * kWeightColumns + c]) << t << " " << c;
    }
  }
}

TEST(ColumnWeightsTest, NothingToSeeIsZeros) {
  Weighed masked(20, 3, 1);
  std::fill(masked.visible.begin(), masked.visible.end(), uint8_t{0});
  masked.Run();
  Weighed nowhere(20, 3, 1);
  std::fill(nowhere.scores.begin(), nowhere.scores.end(), -kInfinity);
  nowhere.Run();
  for (size_t i = 0; i < masked.weights.size(); ++i) {
    EXPECT_EQ(masked.weights[i], 0.0f);
    EXPECT_EQ(nowhere.weights[i], 0.0f);
  }
}

TEST(ColumnWeightsTest, FarScoresAreNothingAndNoNumberStaysNone) {
  Weighed weighed(3, 2, 1);
  weighed.visible = {1, 1, 1};
  weighed.scores = {0.0f, 1.0f, -1e30f, std::nanf(""), -kInfinity, 2.0f};
  weighed.Run();
  EXPECT_EQ(weighed.weights[0], 1.0f);
  EXPECT_EQ(weighed.weights[2], 0.0f);
  EXPECT_EQ(weighed.weights[4], 0.0f);
  EXPECT_TRUE(std::isnan(weighed.weights[3]));
}

}  // namespace
}  // namespace longview::kernels
