#include "kernels/span/softmax_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace longview::kernels {
namespace {

constexpr int kDim = 9;

struct State {
  float m = kNoKey;
  float l = 0.0f;
  std::vector<float> o = std::vector<float>(kDim, 0.0f);

  void Merge(const State& other) {
    MergeState(&m, &l, o.data(), other.m, other.l, other.o.data(), kDim);
  }
  bool operator==(const State&) const = default;
};

State OneKey(float score, std::mt19937* random) {
  State state;
  state.m = score;
  state.l = 1.0f;
  std::normal_distribution<float> normal;
  for (float& x : state.o) x = normal(*random);
  return state;
}

TEST(SoftmaxStateTest, AStateWithoutKeysIsTheIdentity) {
  std::mt19937 random(1);
  for (const float score : {-3e38f, -50.0f, 0.0f, 7.25f, 3e38f}) {
    const State some = OneKey(score, &random);
    State left = some;
    left.Merge(State{});
    EXPECT_EQ(left, some);
    State right;
    right.Merge(some);
    EXPECT_EQ(right, some);
  }
  State nothing;
  nothing.Merge(State{});
  EXPECT_EQ(nothing, State{});
}

TEST(SoftmaxStateTest, MergesInAnyGroupingGiveTheSoftmax) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0.0f, 20.0f);
  std::vector<State> keys;
  for (int i = 0; i < 200; ++i) keys.push_back(OneKey(normal(random), &random));
  double top = -INFINITY;
  for (const State& key : keys) top = std::max(top, double{key.m});
  double sum = 0.0;
  std::vector<double> want(kDim, 0.0);
  for (const State& key : keys) {
    const double weight = std::exp2(key.m - top);
    sum += weight;
    for (int d = 0; d < kDim; ++d) want[d] += weight * key.o[d];
  }
  for (const int group : {1, 7, 64, 200}) {
    State all;
    for (size_t first = 0; first < keys.size(); first += group) {
      State part;
      for (size_t i = first; i < std::min(first + group, keys.size()); ++i) part.Merge(keys[i]);
      all.Merge(part);
    }
    FinishState(all.l, all.o.data(), kDim);
    for (int d = 0; d < kDim; ++d) EXPECT_NEAR(all.o[d], want[d] / sum, 1e-6) << group;
  }
}

TEST(SoftmaxStateTest, FinishingNothingGivesZeros) {
  State nothing;
  FinishState(nothing.l, nothing.o.data(), kDim);
  EXPECT_EQ(nothing.o, std::vector<float>(kDim, 0.0f));
}

TEST(SoftmaxStateTest, PartialsLieInTheirBytesApartAndAligned) {
  const int64_t slots = 5;
  const size_t bytes = PartialBytes(slots, kDim);
  alignas(kAlignment) std::byte block[2048];
  ASSERT_LE(bytes, sizeof(block));
  const PartialStates states = CarvePartials(block, slots, kDim);
  EXPECT_EQ(states.o_stride % 16, 0);
  EXPECT_GE(states.o_stride, kDim);
  EXPECT_GE(states.m, states.o + slots * states.o_stride);
  EXPECT_GE(states.l, states.m + slots);
  EXPECT_LE(reinterpret_cast<std::byte*>(states.l + slots), block + bytes);
}

}  // namespace
}  // namespace longview::kernels
