// Row kernels against the C library in double precision, at widths with and without a tail.
#include "models/dense/rowwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <vector>

namespace longview::models {

namespace baseline {
extern const RowKernels kFloatRows;
}

namespace {

double Reference(Activation act, double x) {
  switch (act) {
    case Activation::kNone:
      return x;
    case Activation::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kQuickGelu:
      return x / (1 + std::exp(-1.702 * x));
  }
  return 0;
}

constexpr Activation kAll[] = {Activation::kNone,     Activation::kGelu, Activation::kGeluTanh,
                               Activation::kRelu,     Activation::kSilu, Activation::kTanh,
                               Activation::kQuickGelu};

TEST(RowwiseTest, ActivationsOverTheirRange) {
  for (const RowKernels* rows : {&ChooseRowKernels(Compute::kFp32), &baseline::kFloatRows}) {
    for (const Activation act : kAll) {
      std::vector<float> x;
      for (double v = -120; v < 120; v += 0.0037) x.push_back(static_cast<float>(v));
      const std::vector<float> bias(x.size(), 0.0f);
      std::vector<float> y = x;
      rows->bias_act(y.data(), bias.data(), static_cast<int64_t>(y.size()), act);
      for (size_t i = 0; i < x.size(); ++i) {
        const double want = Reference(act, x[i]);
        ASSERT_NEAR(y[i], want, 6e-7 * std::max(1.0, std::abs(double{x[i]})))
            << "activation " << static_cast<int>(act) << " at " << x[i];
      }
    }
  }
}

TEST(RowwiseTest, NotANumberIsNotLost) {
  for (const RowKernels* rows : {&ChooseRowKernels(Compute::kFp32), &baseline::kFloatRows}) {
    for (const Activation act : kAll) {
      std::vector<float> y(37, 1.0f), bias(37, 0.0f);
      for (const size_t bad : {3, 36}) y[bad] = std::nanf("");
      rows->bias_act(y.data(), bias.data(), 37, act);
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), i == 3 || i == 36)
            << "activation " << static_cast<int>(act) << ", column " << i;
      }
    }
  }
}

TEST(RowwiseTest, AColumnsBitsDoNotDependOnItsPlaceInTheRow) {
  const RowKernels& rows = ChooseRowKernels(Compute::kFp32);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(61), zero(61);
  for (float& v : x) v = normal(random);
  for (const Activation act : kAll) {
    std::vector<float> whole = x;
    rows.bias_act(whole.data(), zero.data(), 61, act);
    for (int start = 0; start < 61; ++start) {
      std::vector<float> part(x.begin() + start, x.end());
      rows.bias_act(part.data(), zero.data(), static_cast<int64_t>(part.size()), act);
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + start, part.size() * 4), 0);
    }
  }
}

std::vector<float> Drawn(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(RowwiseTest, GateMultipliesTheActivation) {
  const RowKernels& rows = ChooseRowKernels(Compute::kFp32);
  for (const size_t n : {1u, 16u, 35u}) {
    const std::vector<float> x = Drawn(n, 1), bias = Drawn(n, 2), gate = Drawn(n, 3),
                             gate_bias = Drawn(n, 4);
    for (const Activation act : kAll) {
      std::vector<float> y = x;
      rows.bias_gate(y.data(), bias.data(), gate.data(), gate_bias.data(), static_cast<int64_t>(n),
                     act);
      for (size_t i = 0; i < n; ++i) {
        const double want =
            Reference(act, double{x[i]} + bias[i]) * (double{gate[i]} + gate_bias[i]);
        ASSERT_NEAR(y[i], want, 2e-5) << "activation " << static_cast<int>(act) << " of " << n;
      }
    }
  }
}

TEST(RowwiseTest, RotationTurnsHalvesOfHeads) {
  const RowKernels& rows = ChooseRowKernels(Compute::kFp32);
  for (const int64_t half : {1, 8, 16, 20, 32}) {
    constexpr int64_t kHeads = 3;
    const auto n = static_cast<size_t>(2 * half * kHeads);
    const std::vector<float> x = Drawn(n, 1), bias = Drawn(n, 2);
    std::vector<float> cosines, sines;
    for (int64_t j = 0; j < half; ++j) {
      cosines.push_back(std::cos(0.3f * static_cast<float>(j + 1)));
      sines.push_back(std::sin(0.3f * static_cast<float>(j + 1)));
    }
    std::vector<float> out(n);
    rows.bias_rotate(x.data(), bias.data(), cosines.data(), sines.data(), kHeads, half, out.data());
    std::vector<float> in_place = x;
    rows.bias_rotate(in_place.data(), bias.data(), cosines.data(), sines.data(), kHeads, half,
                     in_place.data());
    EXPECT_EQ(out, in_place);
    for (size_t i = 0; i < n; ++i) {
      const auto place = static_cast<int64_t>(i) % (2 * half), j = place % half;
      const auto apart = static_cast<size_t>(half);
      const size_t other = place < half ? i + apart : i - apart;
      const double own = double{x[i]} + bias[i], partner = double{x[other]} + bias[other];
      const double sign = place < half ? -1 : 1;
      const auto angle = static_cast<size_t>(j);
      ASSERT_NEAR(out[i], own * cosines[angle] + sign * partner * sines[angle], 2e-6) << i;
    }
  }
}

TEST(RowwiseTest, BiasNormIsResidualNormOfAnEmptyResidual) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal(0.5f, 2.0f);
  const RowKernels& rows = ChooseRowKernels(Compute::kFp32);
  for (const int64_t n : {1, 15, 16, 17, 100, 512}) {
    std::vector<float> y(n), bias(n), gamma(n), beta(n), x(n), out(n);
    for (auto* values : {&y, &bias, &gamma, &beta}) {
      for (float& v : *values) v = normal(random);
    }
    const NormWeights norm{gamma.data(), beta.data(), 1e-5f};
    rows.residual_norm(x.data(), y.data(), bias.data(), norm, n, nullptr);
    rows.bias_norm(y.data(), bias.data(), norm, n, out.data());
    for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], x[i], 2e-6 * (1 + std::abs(x[i]))) << n;
  }
}

TEST(RowwiseTest, ResidualPrenormKeepsTheSumAndGivesItsNorm) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.5f, 2.0f);
  for (const RowKernels* rows : {&ChooseRowKernels(Compute::kFp32), &baseline::kFloatRows}) {
    for (const int64_t n : {1, 15, 16, 17, 100, 512}) {
      std::vector<float> x(n), y(n), bias(n), gamma(n), beta(n), out(n);
      for (auto* values : {&x, &y, &bias, &gamma, &beta}) {
        for (float& v : *values) v = normal(random);
      }
      const NormWeights norm{gamma.data(), beta.data(), 1e-5f};
      std::vector<float> sum = x, normed = x;
      for (int64_t i = 0; i < n; ++i) sum[i] = x[i] + bias[i] + y[i];
      rows->residual_norm(normed.data(), y.data(), bias.data(), norm, n, nullptr);
      rows->residual_prenorm(x.data(), y.data(), bias.data(), norm, n, out.data());
      EXPECT_EQ(x, sum) << n;
      EXPECT_EQ(out, normed) << n;
    }
  }
}

TEST(RowwiseTest, ResidualAddKeepsTheSum) {
  const RowKernels& rows = ChooseRowKernels(Compute::kFp32);
  std::vector<float> x(37), y(37), bias(37);
  for (int i = 0; i < 37; ++i) x[i] = 0.5f * i, y[i] = 3.0f - i, bias[i] = 0.25f;
  rows.residual_add(x.data(), y.data(), bias.data(), 37, nullptr);
  for (int i = 0; i < 37; ++i) EXPECT_FLOAT_EQ(x[i], 3.25f - 0.5f * i);
}

TEST(RowwiseTest, WeightedRowsLeaveAbsentOnesOut) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  constexpr int64_t kCount = 9;
  for (const int64_t n : {1, 16, 37}) {
    std::vector<float> table(kCount * n), weights(kCount * n), bias(n);
    for (auto* values : {&table, &weights, &bias}) {
      for (float& value : *values) value = normal(random);
    }
    std::vector<const void*> taps;
    for (int64_t i = 0; i < kCount; ++i) taps.push_back(i % 3 == 1 ? nullptr : &table[i * n]);
    for (const RowKernels* rows : {&ChooseRowKernels(Compute::kFp32), &baseline::kFloatRows}) {
      std::vector<float> out(n);
      rows->weighted_rows(taps.data(), weights.data(), kCount, bias.data(), n, out.data());
      for (int64_t c = 0; c < n; ++c) {
        double want = bias[c];
        for (int64_t i = 0; i < kCount; ++i) {
          if (i % 3 != 1) want += double{weights[i * n + c]} * table[i * n + c];
        }
        ASSERT_NEAR(out[c], want, 1e-5) << n << " column " << c;
      }
    }
  }
}

TEST(RowwiseTest, ResidualNormIsLayerNormOfTheSum) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0.5f, 2.0f);
  for (const int64_t n : {1, 15, 16, 17, 32, 100, 768}) {
    std::vector<float> x(n), y(n), bias(n), gamma(n), beta(n);
    for (auto* v : {&x, &y, &bias, &gamma, &beta}) {
      for (float& value : *v) value = normal(random);
    }
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i) mean += (double{x[i]} + y[i] + bias[i]) / n;
    for (int64_t i = 0; i < n; ++i) {
      variance += std::pow(double{x[i]} + y[i] + bias[i] - mean, 2) / n;
    }
    std::vector<float> got = x;
    std::vector<uint16_t> unused(n);
    ChooseRowKernels(Compute::kFp32)
        .residual_norm(got.data(), y.data(), bias.data(), {gamma.data(), beta.data(), 1e-5f}, n,
                       unused.data());
    for (int64_t i = 0; i < n; ++i) {
      const double want =
          (double{x[i]} + y[i] + bias[i] - mean) / std::sqrt(variance + 1e-5) * gamma[i] + beta[i];
      ASSERT_NEAR(got[i], want, 2e-5) << "width " << n << " column " << i;
    }
  }
}

TEST(RowwiseTest, Bf16RoundsToNearestEven) {
  const RowKernels& rows = ChooseRowKernels(Compute::kBf16);
  const std::map<uint32_t, uint16_t> cases = {{0x3f808000u, 0x3f80}, {0x3f818000u, 0x3f82},
                                              {0x3f808001u, 0x3f81}, {0xbf80ffffu, 0xbf81},
                                              {0x7f800000u, 0x7f80}, {0x00000001u, 0x0000}};
  for (const auto& [bits, want] : cases) {
    float value;
    std::memcpy(&value, &bits, 4);
    uint16_t got = 0;
    rows.narrow(&value, 1, &got);
    EXPECT_EQ(got, want) << std::hex << bits;
  }
  const float nan = std::nanf("");
  uint16_t got = 0;
  rows.narrow(&nan, 1, &got);
  EXPECT_EQ(got & 0x7f80, 0x7f80);
  EXPECT_NE(got & 0x7f, 0);
}

TEST(RowwiseTest, VectorHelpers) {
  const VectorKernels& vectors = ChooseVectorKernels();
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  for (const int64_t n : {3, 16, 50, 768}) {
    constexpr int64_t kColumns = 7;
    std::vector<float> x(n), u(kColumns * n), scores(kColumns);
    for (float& v : x) v = normal(random);
    for (float& v : u) v = normal(random);
    vectors.dots(x.data(), u.data(), kColumns, n, scores.data());
    for (int64_t c = 0; c < kColumns; ++c) {
      double want = 0;
      for (int64_t i = 0; i < n; ++i) want += double{x[i]} * u[c * n + i];
      EXPECT_NEAR(scores[c], want, 1e-4);
      EXPECT_EQ(scores[c], vectors.dot(x.data(), u.data() + c * n, n));
    }
    std::vector<float> e = x;
    double sum = 0;
    for (const float v : x) sum += std::exp(double{v} - 1.5);
    EXPECT_NEAR(vectors.exp_sum(e.data(), 1.5f, n), sum, 1e-5 * sum);
    EXPECT_NEAR(e[n - 1], std::exp(x[n - 1] - 1.5f), 1e-6);
  }
}

}  // namespace
}  // namespace longview::models
