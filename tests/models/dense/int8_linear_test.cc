// Int8 linears: near the product of doubles, and the same bits whatever shares the batch, whoever
// computes and whichever instructions there are.
#include "models/dense/int8_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "models/dense/int8_kernels.h"
#include "models/dense/linear.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

struct Shape {
  int64_t out, in;
};
constexpr Shape kShapes[] = {{24, 16}, {5, 33}, {1, 1}, {64, 32}, {130, 48}, {768, 96}, {96, 770}};

std::vector<float> Random(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::byte> InType(const std::vector<float>& values, Compute compute) {
  std::vector<std::byte> bytes(values.size() * ElementBytes(compute));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = kernels::FloatToBFloat16(values[i]);
    std::memcpy(bytes.data() + i * ElementBytes(compute),
                compute == Compute::kFp32 ? static_cast<const void*>(&values[i]) : &half,
                ElementBytes(compute));
  }
  return bytes;
}

std::vector<std::byte> Multiply(const Int8Linear& linear, const Shape& shape, const std::byte* x,
                                int64_t rows, Compute compute) {
  std::vector<std::byte> scratch(linear.ScratchBytes(rows) + 64);
  std::byte* const aligned =
      scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  std::vector<std::byte> y(static_cast<size_t>(rows * shape.out * ElementBytes(compute)));
  linear.Multiply(x, rows, compute, aligned, y.data(), TorchParallelFor());
  return y;
}

std::vector<const kernels::Int8Kernels*> Ways() {
  std::vector<const kernels::Int8Kernels*> ways = {&kernels::kInt8Ref, &kernels::kInt8ShiftedRef,
                                                   ChooseInt8().kernels};
  if (const auto* avx2 = kernels::Int8KernelsOfAvx2()) ways.push_back(avx2);
  return ways;
}

TEST(Int8LinearTest, IsNearTheProduct) {
  for (const Shape& shape : kShapes) {
    const std::vector<float> weight = Random(shape.out * shape.in, 1);
    const std::vector<float> x = Random(9 * shape.in, 2);
    const Int8Linear linear(weight, shape.out, shape.in, *ChooseInt8().kernels);
    const std::vector<std::byte> y =
        Multiply(linear, shape, InType(x, Compute::kFp32).data(), 9, Compute::kFp32);
    for (int64_t r = 0; r < 9; ++r) {
      float most_x = 0;
      for (int64_t i = 0; i < shape.in; ++i)
        most_x = std::max(most_x, std::abs(x[r * shape.in + i]));
      for (int64_t o = 0; o < shape.out; ++o) {
        double want = 0, weights = 0, inputs = 0;
        float most_w = 0;
        for (int64_t i = 0; i < shape.in; ++i) {
          const float w = weight[o * shape.in + i], v = x[r * shape.in + i];
          want += double{w} * v;
          weights += std::abs(w);
          inputs += std::abs(v);
          most_w = std::max(most_w, std::abs(w));
        }
        // Half a step of either scale for every term, and of both.
        const double step_x = most_x / 127, step_w = most_w / 127;
        const double bound = step_x / 2 * weights + step_w / 2 * inputs +
                             static_cast<double>(shape.in) * step_x * step_w / 4;
        float got;
        std::memcpy(&got, y.data() + (r * shape.out + o) * 4, 4);
        EXPECT_NEAR(got, want, bound * 1.001 + 1e-6) << shape.out << " x " << shape.in;
      }
    }
  }
}

TEST(Int8LinearTest, BitsDependOnTheRowAlone) {
  constexpr int64_t kRows = 150;
  for (const Shape& shape : kShapes) {
    const std::vector<float> weight = Random(shape.out * shape.in, 3);
    const std::vector<float> values = Random(kRows * shape.in, 4);
    for (const Compute compute : {Compute::kFp32, Compute::kBf16}) {
      const std::vector<std::byte> x = InType(values, compute);
      const int64_t in_bytes = shape.in * ElementBytes(compute);
      const int64_t out_bytes = shape.out * ElementBytes(compute);
      const Int8Linear first(weight, shape.out, shape.in, kernels::kInt8Ref);
      const std::vector<std::byte> want = Multiply(first, shape, x.data(), kRows, compute);
      for (const kernels::Int8Kernels* way : Ways()) {
        const Int8Linear linear(weight, shape.out, shape.in, *way);
        EXPECT_EQ(Multiply(linear, shape, x.data(), kRows, compute), want) << way->name;
        constexpr std::pair<int, int> kParts[] = {{0, 1}, {149, 1}, {3, 64}, {64, 65}, {17, 5}};
        for (const auto& [begin, rows] : kParts) {
          const TeamScope one(rows % 2 == 0 ? 1 : WholeTeam());
          const std::vector<std::byte> some =
              Multiply(linear, shape, x.data() + begin * in_bytes, rows, compute);
          EXPECT_EQ(std::memcmp(some.data(), want.data() + begin * out_bytes, some.size()), 0)
              << way->name << " rows " << begin << " + " << rows;
        }
      }
    }
  }
}

// Panels of any size, through the interface that models use.
TEST(Int8LinearTest, ALinearOfInt8HasTheSameBits) {
  const Shape shape = {130, 48};
  const std::vector<float> weight = Random(shape.out * shape.in, 5);
  const auto linear = Linear::PackInt8("test", weight, shape.out, shape.in, Compute::kFp32);
  ASSERT_TRUE(linear.ok()) << linear.status();
  // A byte or two for each of 48 inputs, and the scale.
  EXPECT_EQ(linear->RowScratchBytes(), 48 * ChooseInt8().kernels->element_bytes + 4);
  EXPECT_LT(linear->bytes(), 2 * shape.out * shape.in) << "less than 16-bit weights";
  const std::vector<float> x = Random(700 * shape.in, 6);
  const Int8Linear plain(weight, shape.out, shape.in, kernels::kInt8Ref);
  const std::vector<std::byte> want =
      Multiply(plain, shape, reinterpret_cast<const std::byte*>(x.data()), 700, Compute::kFp32);
  int64_t seen = 0;
  ForEachPanel(*linear, x.data(), 700, [&](int64_t row, int64_t rows, const void* y) {
    EXPECT_EQ(std::memcmp(y, want.data() + row * shape.out * 4, rows * shape.out * 4), 0) << row;
    seen += rows;
  });
  EXPECT_EQ(seen, 700);
}

class Listener final : public Int8Observer {
 public:
  void Observe(const std::string& linear, double signal, double noise) override {
    name = linear;
    total_signal += signal;
    total_noise += noise;
  }
  std::string name;
  double total_signal = 0, total_noise = 0;
};

TEST(Int8LinearTest, AnObservedLinearIsExactAndSaysWhatInt8WouldChange) {
  const Shape shape = {64, 96};
  std::vector<float> weight = Random(shape.out * shape.in, 7);
  const std::vector<float> x = Random(PaddedRows(32) * shape.in, 8);
  const auto noise_of = [&](Listener& listener) {
    PanelRules rules;
    const auto exact = Linear::Pack("a.name", weight, shape.out, shape.in, Compute::kFp32, rules);
    const auto observed = Linear::PackObserved("a.name", weight, shape.out, shape.in,
                                               Compute::kFp32, rules, listener);
    ASSERT_TRUE(exact.ok() && observed.ok());
    // Fewer rows than there are where a panel is smaller on this machine.
    const int panel = NextPanel(exact->sizes(), 32), used = std::min(panel, 32);
    const PanelOutput want = exact->Panel(x.data(), panel, used),
                      got = observed->Panel(x.data(), panel, used);
    EXPECT_EQ(std::memcmp(want.data(), got.data(), used * shape.out * 4), 0);
  };
  Listener usual, spoilt;
  noise_of(usual);
  EXPECT_EQ(usual.name, "a.name");
  EXPECT_GT(usual.total_noise, 0);
  EXPECT_LT(usual.total_noise, 1e-3 * usual.total_signal);
  // One input's weights of a thousand times the size leave no room for the others.
  for (int64_t o = 0; o < shape.out; ++o) weight[static_cast<size_t>(o * shape.in)] *= 1000;
  noise_of(spoilt);
  EXPECT_GT(spoilt.total_noise, 100 * usual.total_noise);
}

TEST(Int8LinearTest, WrongShapesAreRefused) {
  const std::vector<float> weight(12);
  EXPECT_FALSE(Linear::PackInt8("w", weight, 4, 4, Compute::kFp32).ok());
  const std::vector<float> wide(static_cast<size_t>(kernels::kInt8MaxInputs + 1));
  const auto linear = Linear::PackInt8("w", wide, 1, kernels::kInt8MaxInputs + 1, Compute::kFp32);
  EXPECT_NE(linear.status().message().find("65536"), std::string::npos) << linear.status();
}

}  // namespace
}  // namespace longview::models
