#include "kernels/pool/slice_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/kernels/support/run.h"
#include "tests/kernels/support/tensors.h"

namespace longview::kernels {
namespace {

using testing::Tensor;
using testing::Threads;

struct Shape {
  const char* name;
  std::vector<int> lengths;
  int channels;
  DType dtype = DType::kFloat32;
  bool holes = false;
};

const std::vector<Shape> kShapes = {
    {"one token", {1}, 1},
    {"empty runs", {0, 3, 0}, 17},
    {"a block of channels", {8, 8, 5}, 64},
    {"odd channels", {33, 1, 65}, 201},
    {"many short runs", std::vector<int>(97, 2), 24},
    {"bf16", {50, 9}, 72, DType::kBFloat16},
    {"masked tokens", {50, 9, 4}, 48, DType::kFloat32, true},
    {"masked tokens in bf16", {16, 16, 4}, 131, DType::kBFloat16, true},
};

// Rows of a shape: random, all below zero for the maximum to be told from nothing.
struct Data {
  explicit Data(const Shape& shape) : random(29), rows(0, 1, 1) {
    int total = 0;
    for (const int n : shape.lengths) total += n;
    rows = Tensor::Random(total, 1, shape.channels, &random, shape.dtype);
    for (size_t i = 0; i < rows.elements(); ++i) rows.Set(i, rows.Get(i) - 9.0f);
    visible.assign(static_cast<size_t>(total), 1);
    for (size_t t = 0; shape.holes && t < visible.size(); ++t) visible[t] = t % 3 != 0;
    // The last run of a shape with holes is masked as a whole.
    for (int t = total - shape.lengths.back(); shape.holes && t < total; ++t) visible[t] = 0;
  }
  std::mt19937 random;
  Tensor rows;
  std::vector<uint8_t> visible;
};

// Pools every run in pieces of at most `step` tokens, as the pooling says.
class Pooled {
 public:
  std::vector<float> out;  // [runs, channels]

  Pooled(const Shape& shape, const Data& data, SlicePooling pooling)
      : out(shape.lengths.size() * static_cast<size_t>(shape.channels), 77.0f), shape_(shape) {
    call_.pooling = pooling;
    call_.rows = data.rows.data();
    call_.dtype = shape.dtype;
    call_.row_stride = call_.channels = shape.channels;
    call_.visible = shape.holes ? data.visible.data() : nullptr;
  }

  void Run(int step, const std::function<void(const SlicePoolCall&)>& pool) {
    for (int from = 0; from == 0 || from < Longest(); from += step) {
      std::vector<SlicePiece> pieces;
      int row0 = 0;
      for (size_t i = 0; i < shape_.lengths.size(); row0 += shape_.lengths[i++]) {
        const int length = shape_.lengths[i];
        if (from > 0 && from >= length) continue;
        SlicePiece& piece = pieces.emplace_back();
        piece.row0 = row0 + from;
        piece.rows = std::min(step, length - from);
        piece.begins = from == 0;
        piece.divisor = from + piece.rows == length ? Visible(row0, length) : 0;
        piece.out = out.data() + i * static_cast<size_t>(shape_.channels);
      }
      call_.pieces = pieces;
      pool(call_);
    }
  }

 private:
  int Longest() const { return *std::max_element(shape_.lengths.begin(), shape_.lengths.end()); }
  int Visible(int row0, int length) const {
    if (call_.visible == nullptr) return length;
    return static_cast<int>(std::count(call_.visible + row0, call_.visible + row0 + length, 1));
  }

  const Shape& shape_;
  SlicePoolCall call_;
};

class SlicePoolTest : public ::testing::TestWithParam<SlicePooling> {};

TEST_P(SlicePoolTest, EqualsReference) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const Data data(shape);
    Pooled want(shape, data, GetParam()), got(shape, data, GetParam());
    want.Run(1000, PoolSlicesRef);
    got.Run(1000, [](const SlicePoolCall& call) { PoolSlices(call, Threads(3)); });
    for (size_t i = 0; i < want.out.size(); ++i) ASSERT_NEAR(got.out[i], want.out[i], 1e-5) << i;
  }
}

TEST_P(SlicePoolTest, PiecesAndThreadsChangeNoBit) {
  for (const Shape& shape : kShapes) {
    // A run may not begin with a masked piece.
    if (shape.holes) continue;
    SCOPED_TRACE(shape.name);
    const Data data(shape);
    Pooled whole(shape, data, GetParam());
    whole.Run(1000, [](const SlicePoolCall& call) { PoolSlices(call, Threads(1)); });
    for (const int step : {1, 3, 16}) {
      Pooled pieces(shape, data, GetParam());
      pieces.Run(step, [](const SlicePoolCall& call) { PoolSlices(call, Threads(4)); });
      EXPECT_EQ(pieces.out, whole.out) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Poolings, SlicePoolTest,
                         ::testing::Values(SlicePooling::kMean, SlicePooling::kMax),
                         [](const auto& info) {
                           return info.param == SlicePooling::kMean ? "mean" : "max";
                         });

}  // namespace
}  // namespace longview::kernels
