#include "kernels/pool/place_mix.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/support/tensors.h"

namespace longview::kernels {
namespace {

using testing::Tensor;

struct Shape {
  const char* name;
  int places, outputs, wanted, channels;
  DType dtype = DType::kFloat32;
  std::vector<int> masked = {};
};

const std::vector<Shape> kShapes = {
    {"one of everything", 1, 1, 1, 1},
    {"no place at all", 0, 5, 5, 33},
    {"whole tiles", 16, 8, 8, 64},
    {"odd", 7, 5, 3, 37},
    {"wide", 64, 129, 129, 200},
    {"bf16", 9, 6, 6, 95, DType::kBFloat16},
    {"masked", 8, 16, 16, 48, DType::kFloat32, {0, 3, 7}},
    {"all masked, bf16", 3, 4, 4, 32, DType::kBFloat16, {0, 1, 2}},
};

TEST(PlaceMixTest, EqualsReference) {
  std::mt19937 random(31);
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const Tensor rows = Tensor::Random(shape.places, 1, shape.channels, &random, shape.dtype);
    const Tensor weights = Tensor::Random(shape.places, 1, shape.outputs, &random);
    const Tensor bias = Tensor::Random(1, 1, shape.outputs, &random);
    std::vector<uint8_t> visible(static_cast<size_t>(shape.places), 1);
    for (const int place : shape.masked) visible[static_cast<size_t>(place)] = 0;
    PlaceMix mix;
    mix.weights = static_cast<const float*>(weights.data());
    mix.bias = static_cast<const float*>(bias.data());
    mix.outputs = shape.outputs;
    mix.wanted = shape.wanted;
    mix.rows = rows.data();
    mix.dtype = shape.dtype;
    mix.row_stride = shape.channels;
    mix.visible = shape.masked.empty() ? nullptr : visible.data();
    mix.places = shape.places;
    mix.channels = shape.channels;
    mix.out_stride = shape.channels + 3;
    // Bytes between rows and behind the last wanted output stay.
    const auto size = static_cast<size_t>(shape.outputs * mix.out_stride);
    std::vector<float> want(size, 5.0f), got(size, 5.0f);
    mix.out = want.data();
    MixPlacesRef(mix);
    mix.out = got.data();
    MixPlaces(mix);
    for (size_t i = 0; i < size; ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << i;
  }
}

}  // namespace
}  // namespace longview::kernels
