// Causal sums on a device against their definition, whole and cut anywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/linear_attention/running_outer.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::TestDevice;
using testing::TestDevices;

struct Shape {
  int heads, width, rows;
  OuterActivation activation = OuterActivation::kSoftplusLn2;
};

constexpr int kTokens = 37;  // Four passes of eight and a rest.

struct Data {
  explicit Data(const Shape& shape) : shape(shape), stride(shape.heads * shape.width) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0, 1);
    const auto fill = [&](size_t count) {
      std::vector<float> values(count);
      for (float& value : values) value = normal(random);
      return values;
    };
    const auto size = static_cast<size_t>(kTokens * stride);
    for (std::vector<float>* rows : {&q, &k, &v, &g}) *rows = fill(size);
    packed.resize(static_cast<size_t>(OuterPackedFloats(shape.heads, shape.width, shape.rows)));
    PackOuterRows(fill(static_cast<size_t>(shape.rows * stride)).data(), shape.heads, shape.width,
                  shape.rows, packed.data());
    state.resize(static_cast<size_t>(OuterStateFloats(shape.heads, shape.width, shape.rows)));
  }

  std::vector<float> Expected() const {
    std::vector<float> out(q.size()), sums = state;
    OuterSequence sequence;
    sequence.tokens = kTokens;
    sequence.rows = shape.rows;
    sequence.packed = packed.data();
    sequence.state = sums.data();
    OuterCall call;
    call.q = q.data();
    call.k = k.data();
    call.v = v.data();
    call.g = g.data();
    call.row_stride = call.out_stride = stride;
    call.out = out.data();
    call.heads = shape.heads;
    call.width = shape.width;
    call.scale = 0.4f;
    call.activation = shape.activation;
    call.sequences = {&sequence, 1};
    AppendOuterRef(call);
    return out;
  }

  const Shape shape;
  const int stride;
  std::vector<float> q, k, v, g, packed, state;
};

// Reads the tokens in the given pieces, with `beside` copies of the sequence in every call.
std::vector<float> Read(TestDevice& device, const Data& data, const std::vector<int>& cuts,
                        int beside) {
  AppendOuterRows args = {};
  args.q = device.Upload(data.q);
  args.k = device.Upload(data.k);
  args.v = device.Upload(data.v);
  args.g = device.Upload(data.g);
  args.row_stride = args.out_stride = data.stride;
  args.heads = data.shape.heads;
  args.width = data.shape.width;
  args.scale = 0.4f;
  args.activation = data.shape.activation;
  args.count = beside + 1;
  const float* packed = device.Upload(data.packed);
  std::vector<float*> states;
  // A state is not read before its first token.
  for (int s = 0; s <= beside; ++s) {
    states.push_back(device.Upload(std::vector<float>(data.state.size(), NAN)));
  }
  // Copies write the same rows of outputs of their own.
  std::vector<float> out;
  float* outs = device.Allocate<float>(data.q.size());
  args.out = outs;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::vector<DeviceOuterSequence> sequences;
    for (int s = 0; s <= beside; ++s) {
      sequences.push_back(
          {cuts[i], cuts[i + 1] - cuts[i], cuts[i], data.shape.rows, packed, states[s]});
    }
    args.sequences = device.Upload(sequences);
    EXPECT_EQ(device.api().outer.append(device.stream(), args), 0);
  }
  return device.Download(outs, data.q.size());
}

TEST(DeviceOuterTest, IsItsDefinitionHoweverTokensArrive) {
  for (const Shape& shape : {Shape{1, 1, 1},
                             {2, 16, 16},
                             {3, 20, 7, OuterActivation::kSoftplus},
                             {2, 64, 33, OuterActivation::kElu1}}) {
    SCOPED_TRACE(std::to_string(shape.width) + " x " + std::to_string(shape.rows));
    const Data data(shape);
    const std::vector<float> expected = data.Expected();
    for (const auto& device : TestDevices()) {
      SCOPED_TRACE(device->name());
      const std::vector<float> whole = Read(*device, data, {0, kTokens}, 0);
      for (size_t i = 0; i < whole.size(); ++i) {
        ASSERT_NEAR(whole[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << i;
      }
      EXPECT_EQ(Read(*device, data, {0, 1, 9, 10, 26, kTokens}, 0), whole);
      EXPECT_EQ(Read(*device, data, {0, kTokens}, 2), whole);
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
