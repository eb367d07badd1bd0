#include "models/layers/map_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "models/parallel.h"

namespace longview::models {
namespace {

struct Sizes {
  int kernel, stride;
};

class ConvolveTest : public testing::TestWithParam<Sizes> {
 protected:
  static constexpr int kIn = 5, kOut = 7;

  ConvolveTest() : weight_(kOut * GetParam().kernel * GetParam().kernel * kIn) {
    std::mt19937 random(1);
    for (float& value : weight_) value = normal_(random);
    PanelRules rules;
    const int64_t columns = static_cast<int64_t>(weight_.size()) / kOut;
    auto linear = Linear::Pack("test", weight_, kOut, columns, Compute::kFp32, rules);
    EXPECT_TRUE(linear.ok()) << linear.status();
    convolution_ = std::make_unique<Convolution>(Convolution{
        {*std::move(linear), std::vector<float>(kOut)}, GetParam().kernel, GetParam().stride});
    panel_.resize(kPanelRows * columns);
  }

  std::vector<float> Run(const std::vector<float>& input, const std::vector<MapRows>& inputs,
                         const std::vector<MapRows>& outputs) {
    std::vector<float> result((outputs.back().row0 + outputs.back().rows()) * kOut);
    const PanelContext context = {&pool_, reinterpret_cast<std::byte*>(panel_.data()), nullptr};
    Convolve(*convolution_, reinterpret_cast<const std::byte*>(input.data()), inputs, outputs,
             context, [&](int64_t row, const std::byte* y) {
               std::copy_n(reinterpret_cast<const float*>(y), kOut, result.data() + row * kOut);
             });
    return result;
  }

  // Output (y, x, channel) of one map, by definition.
  double Naive(const std::vector<float>& input, const MapRows& map, int y, int x, int out) const {
    const auto [kernel, stride] = GetParam();
    double sum = 0;
    for (int dy = 0; dy < kernel; ++dy) {
      for (int dx = 0; dx < kernel; ++dx) {
        const int row = y * stride + dy - kernel / 2, column = x * stride + dx - kernel / 2;
        if (row < 0 || column < 0 || row >= map.height || column >= map.width) continue;
        for (int c = 0; c < kIn; ++c) {
          sum += double{input[(map.row0 + row * map.width + column) * kIn + c]} *
                 weight_[((out * kernel + dy) * kernel + dx) * kIn + c];
        }
      }
    }
    return sum;
  }

  std::normal_distribution<float> normal_;
  std::vector<float> weight_;
  std::unique_ptr<Convolution> convolution_;
  std::vector<float> panel_;
  const TorchParallelFor pool_;
};

TEST_P(ConvolveTest, SeveralMapsAtOnceAreTheDefinitionOfEach) {
  const auto half = [&](int n) { return (n + GetParam().stride - 1) / GetParam().stride; };
  std::vector<MapRows> inputs, outputs;
  int64_t in_rows = 0, out_rows = 0;
  for (const auto& [height, width] : {std::pair{9, 40}, {1, 1}, {2, 13}, {1, 30}, {30, 1}}) {
    inputs.push_back({height, width, in_rows});
    outputs.push_back({half(height), half(width), out_rows});
    in_rows += inputs.back().rows();
    out_rows += outputs.back().rows();
  }
  std::mt19937 random(2);
  std::vector<float> input(in_rows * kIn);
  for (float& value : input) value = normal_(random);
  const std::vector<float> together = Run(input, inputs, outputs);
  for (size_t m = 0; m < inputs.size(); ++m) {
    const MapRows& to = outputs[m];
    for (int64_t row = 0; row < to.rows(); ++row) {
      for (int out = 0; out < kOut; ++out) {
        const double want = Naive(input, inputs[m], static_cast<int>(row / to.width),
                                  static_cast<int>(row % to.width), out);
        ASSERT_NEAR(together[(to.row0 + row) * kOut + out], want, 1e-4);
      }
    }
    // A map alone has the same bits.
    const std::vector<float> alone = Run(input, {inputs[m]}, {{to.height, to.width, 0}});
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + to.row0 * kOut));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvolveTest,
                         testing::Values(Sizes{1, 1}, Sizes{3, 1}, Sizes{3, 2}, Sizes{7, 2}),
                         [](const auto& info) {
                           return "kernel" + std::to_string(info.param.kernel) + "stride" +
                                  std::to_string(info.param.stride);
                         });

}  // namespace
}  // namespace longview::models
