#include "kernels/linear_attention/running_outer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "tests/kernels/support/run.h"

namespace longview::kernels {
namespace {

struct Shape {
  int heads, width, rows;
  OuterActivation activation = OuterActivation::kSoftplusLn2;
  float size = 1;  // Standard deviation of the inputs.
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.heads << " heads of " << shape.width << ", " << shape.rows << " rows, phi "
       << static_cast<int>(shape.activation) << ", size " << shape.size;
}

std::vector<Isa> Isas() {
  std::vector<Isa> isas = {Isa::kScalar};
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (IsaSupported(isa)) isas.push_back(isa);
  }
  return isas;
}

std::vector<float> Random(int64_t count, float size, std::mt19937& random) {
  std::normal_distribution<float> normal(0, size);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Tokens of several sequences, rows of q, k, v, g side by side.
class Tokens {
 public:
  Tokens(const Shape& shape, int64_t count, std::mt19937& random)
      : shape_(shape),
        stride_(4 * width() + 3),
        values_(Random(count * stride_, shape.size, random)) {
    projected_ = Random(int64_t{shape.rows} * width(), shape.size, random);
    packed_.resize(OuterPackedFloats(shape.heads, shape.width, shape.rows));
    PackOuterRows(projected_.data(), shape.heads, shape.width, shape.rows, packed_.data());
  }

  int64_t width() const { return int64_t{shape_.heads} * shape_.width; }
  const float* packed() const { return packed_.data(); }
  float In(int part, int64_t token, int head, int channel) const {
    return values_[token * stride_ + part * width() + head * shape_.width + channel];
  }
  float P(int row, int head, int channel) const {
    return projected_[row * width() + head * shape_.width + channel];
  }

  OuterCall Call(float* out, std::span<const OuterSequence> sequences, bool tied = false) const {
    OuterCall call;
    call.q = values_.data();
    call.k = call.q + width();
    call.v = tied ? call.k : call.q + 2 * width();
    call.g = call.q + 3 * width();
    call.row_stride = stride_;
    call.out = out;
    call.out_stride = width();
    call.heads = shape_.heads;
    call.width = shape_.width;
    call.scale = 0.3f;
    call.activation = shape_.activation;
    call.sequences = sequences;
    return call;
  }

 private:
  const Shape shape_;
  const int64_t stride_;
  const std::vector<float> values_;
  std::vector<float> projected_, packed_;
};

void Append(const OuterCall& call, Isa isa, int threads = 1) {
  const WorkspaceBytes bytes = MeasureOuter(call);
  std::vector<std::byte> memory(bytes.total(threads) + kAlignment);
  void* block = memory.data();
  size_t room = memory.size();
  std::align(kAlignment, bytes.total(threads), block, room);
  AppendOuter(call, CarveWorkspace(block, bytes), testing::Threads(threads), isa);
}

double Phi(OuterActivation activation, double x) {
  if (activation == OuterActivation::kElu1) return x > 0 ? x + 1 : std::exp(x);
  const double beta = activation == OuterActivation::kSoftplusLn2 ? std::log(2.0) : 1.0;
  return x * beta > 30 ? x : std::log1p(std::exp(beta * x)) / beta;
}

// The definition: prefix sums over all earlier tokens for every token, nothing carried.
std::vector<double> Naive(const Shape& shape, const Tokens& tokens, int64_t count, int head,
                          int64_t t) {
  std::vector<double> scores(shape.rows), out(shape.width);
  const auto write = [&](int64_t j, int r) {
    double score = 0;
    for (int d = 0; d < shape.width; ++d) {
      score += double{tokens.In(3, j, head, d)} * tokens.P(r, head, d);
    }
    return Phi(shape.activation, 0.3f * score);
  };
  for (int r = 0; r < shape.rows; ++r) {
    for (int64_t j = 0; j <= t; ++j) {
      double product = 0;
      for (int d = 0; d < shape.width; ++d) {
        product += double{tokens.In(0, t, head, d)} * tokens.In(1, j, head, d);
      }
      scores[r] += 0.3f * product * write(j, r) / static_cast<double>(t + 1);
    }
  }
  EXPECT_LE(t, count);
  const double top = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - top);
  for (int r = 0; r < shape.rows; ++r) {
    for (int64_t j = 0; j <= t; ++j) {
      const double weight = scores[r] / total * write(j, r) / static_cast<double>(t + 1);
      for (int d = 0; d < shape.width; ++d) out[d] += weight * tokens.In(2, j, head, d);
    }
  }
  return out;
}

class RunningOuterTest : public ::testing::TestWithParam<Shape> {};

TEST_P(RunningOuterTest, EqualsTheDefinition) {
  const Shape shape = GetParam();
  constexpr int64_t kTokens = 21;
  std::mt19937 random(3);
  const Tokens tokens(shape, kTokens, random);
  for (const Isa isa : Isas()) {
    std::vector<float> state(OuterStateFloats(shape.heads, shape.width, shape.rows));
    std::vector<float> out(kTokens * tokens.width(), 77.0f);
    const OuterSequence sequence = {0, kTokens, 0, shape.rows, tokens.packed(), state.data()};
    Append(tokens.Call(out.data(), {&sequence, 1}), isa);
    for (int head = 0; head < shape.heads; ++head) {
      for (int64_t t = 0; t < kTokens; ++t) {
        const std::vector<double> want = Naive(shape, tokens, kTokens, head, t);
        for (int d = 0; d < shape.width; ++d) {
          const float got = out[t * tokens.width() + head * shape.width + d];
          ASSERT_NEAR(got, want[d], 3e-4 * shape.size * shape.size)
              << IsaName(isa) << " token " << t << " head " << head << " channel " << d;
        }
      }
    }
  }
}

TEST_P(RunningOuterTest, StateIsTheSumsOfTheDefinition) {
  const Shape shape = GetParam();
  constexpr int64_t kTokens = 9;
  std::mt19937 random(4);
  const Tokens tokens(shape, kTokens, random);
  for (const Isa isa : Isas()) {
    std::vector<float> state(OuterStateFloats(shape.heads, shape.width, shape.rows));
    std::vector<float> out(kTokens * tokens.width());
    const OuterSequence sequence = {0, kTokens, 0, shape.rows, tokens.packed(), state.data()};
    Append(tokens.Call(out.data(), {&sequence, 1}), isa);
    const int head = shape.heads - 1, row = shape.rows - 1, channel = shape.width - 1;
    double keys = 0, values = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      double score = 0;
      for (int d = 0; d < shape.width; ++d) {
        score += double{tokens.In(3, t, head, d)} * tokens.P(row, head, d);
      }
      const double write = Phi(shape.activation, 0.3f * score);
      keys += write * tokens.In(1, t, head, channel);
      values += write * tokens.In(2, t, head, channel);
    }
    const double limit = 2e-5 * (1 + std::abs(keys) + std::abs(values)) * shape.size * shape.size;
    EXPECT_NEAR(OuterKeySum(state.data(), shape.heads, shape.width, shape.rows, head, channel, row),
                keys, limit)
        << IsaName(isa);
    EXPECT_NEAR(
        OuterValueSum(state.data(), shape.heads, shape.width, shape.rows, head, row, channel),
        values, limit)
        << IsaName(isa);
  }
}

TEST_P(RunningOuterTest, CutsBatchMatesAndThreadsChangeNoBit) {
  const Shape shape = GetParam();
  constexpr int64_t kTokens = 37;
  std::mt19937 random(5);
  const Tokens tokens(shape, 2 * kTokens, random);
  const int64_t floats = OuterStateFloats(shape.heads, shape.width, shape.rows);
  for (const Isa isa : Isas()) {
    if (isa == Isa::kScalar) continue;  // The definition rounds its state once per call.
    std::vector<float> whole_state(floats), whole(2 * kTokens * tokens.width());
    const OuterSequence alone = {0, kTokens, 0, shape.rows, tokens.packed(), whole_state.data()};
    Append(tokens.Call(whole.data(), {&alone, 1}), isa);
    for (int trial = 0; trial < 6; ++trial) {
      std::vector<float> state(floats), other_state(floats), out(2 * kTokens * tokens.width());
      for (int64_t at = 0; at < kTokens;) {
        const int64_t longest = trial == 0 ? 1 : 17;
        const int64_t count =
            std::min<int64_t>(kTokens - at, 1 + static_cast<int64_t>(random() % longest));
        const OuterSequence both[] = {
            {kTokens + at, count, at, shape.rows, tokens.packed(), other_state.data()},
            {at, count, at, shape.rows, tokens.packed(), state.data()},
            {0, 0, 0, shape.rows, tokens.packed(), other_state.data()}};
        Append(tokens.Call(out.data(), both), isa, 1 + trial % 3);
        at += count;
      }
      ASSERT_TRUE(std::equal(out.begin(), out.begin() + kTokens * tokens.width(), whole.begin()))
          << IsaName(isa) << " trial " << trial;
      ASSERT_EQ(state, whole_state) << IsaName(isa) << " trial " << trial;
    }
  }
}

TEST_P(RunningOuterTest, TiedSumsAreTransposesInEveryBit) {
  const Shape shape = GetParam();
  constexpr int64_t kTokens = 12;
  std::mt19937 random(6);
  const Tokens tokens(shape, kTokens, random);
  for (const Isa isa : Isas()) {
    std::vector<float> state(OuterStateFloats(shape.heads, shape.width, shape.rows));
    std::vector<float> out(kTokens * tokens.width());
    const OuterSequence sequence = {0, kTokens, 0, shape.rows, tokens.packed(), state.data()};
    Append(tokens.Call(out.data(), {&sequence, 1}, true), isa);
    for (int row = 0; row < shape.rows; ++row) {
      for (int d = 0; d < shape.width; ++d) {
        ASSERT_EQ(OuterKeySum(state.data(), shape.heads, shape.width, shape.rows, 0, d, row),
                  OuterValueSum(state.data(), shape.heads, shape.width, shape.rows, 0, row, d));
      }
    }
  }
}

constexpr Shape kShapes[] = {
    {1, 1, 1},
    {3, 5, 2},
    {2, 16, 16},
    {4, 8, 15, OuterActivation::kSoftplus},
    {2, 17, 33, OuterActivation::kElu1},
    {1, 64, 17},
    {2, 128, 100, OuterActivation::kSoftplus},
    {1, 31, 64, OuterActivation::kElu1, 4},
    // Scores in the hundreds: the linear end of softplus, and weights that vanish.
    {2, 24, 9, OuterActivation::kSoftplusLn2, 8},
    {2, 24, 9, OuterActivation::kSoftplus, 8},
};

INSTANTIATE_TEST_SUITE_P(Shapes, RunningOuterTest, ::testing::ValuesIn(kShapes));

TEST(RunningOuterTest, ALongSequenceStaysFiniteAndOfConstantSize) {
  const Shape shape = {1, 16, 16};
  constexpr int64_t kBlock = 500;
  std::mt19937 random(7);
  const Tokens tokens(shape, kBlock, random);
  std::vector<float> state(OuterStateFloats(1, 16, 16)), out(kBlock * 16);
  for (int64_t before = 0; before < 20 * kBlock; before += kBlock) {
    const OuterSequence sequence = {0, kBlock, before, 16, tokens.packed(), state.data()};
    Append(tokens.Call(out.data(), {&sequence, 1}), BestFloatIsa());
  }
  for (const float value : out) ASSERT_LT(std::abs(value), 100.0f);
}

}  // namespace
}  // namespace longview::kernels
