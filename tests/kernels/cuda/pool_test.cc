// Pooling on a device against its definition: whole segments in pieces, open ones token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/base/bfloat16.h"
#include "kernels/cuda/pool/pool_pieces.h"
#include "kernels/pool/segment_pool.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::TestDevice;
using testing::TestDevices;

struct Shape {
  const char* name;
  std::vector<int> lengths;
  int heads;
  int per_head;
  int width;
  bool full_width = false;  // Every column reads all channels.
  bool holes = false;
  bool bf16 = false;
};

const std::vector<Shape> kShapes = {
    {"one token", {1}, 1, 1, 8},
    {"empty segments", {0, 3, 0, 5, 0}, 2, 2, 16},
    {"pieces whole and cut", {255, 256, 257, 600}, 2, 1, 32},
    {"more columns than a block takes", {33, 300}, 3, 9, 37},
    {"folded global row", {700, 12}, 12, 1, 192, true},
    {"masked tokens", {500, 9, 300}, 2, 3, 48, false, true},
    {"bf16", {50, 290}, 2, 3, 130, false, true, true},
};

struct Data {
  explicit Data(const Shape& shape) : shape(shape), columns(shape.heads * shape.per_head) {
    offsets.push_back(0);
    for (const int n : shape.lengths) offsets.push_back(offsets.back() + n);
    std::mt19937 random(41);
    std::normal_distribution<float> normal(0, 3);
    row = shape.full_width ? shape.width : shape.heads * shape.width;
    scores.resize(static_cast<size_t>(tokens()) * columns);
    values.resize(static_cast<size_t>(tokens()) * row);
    for (float& score : scores) score = normal(random);
    for (float& value : values) {
      value = normal(random);
      bits.push_back(FloatToBFloat16(value));
      if (shape.bf16) value = BFloat16ToFloat(bits.back());
    }
    visible.assign(static_cast<size_t>(tokens()), 1);
    // The last segment of a shape with holes is masked as a whole, others in whole pieces too.
    for (int t = 0; shape.holes && t < tokens(); ++t) {
      visible[t] = t % 3 != 0 && t > 260 && t < offsets[offsets.size() - 2] ? 1 : 0;
    }
  }
  int tokens() const { return offsets.back(); }
  int segments() const { return static_cast<int>(offsets.size()) - 1; }

  // By definition, double precision.
  std::vector<float> Means() const {
    std::vector<float> out(static_cast<size_t>(segments()) * columns * shape.width);
    PoolValue value;
    value.data = values.data();
    value.row_stride = row;
    value.head_stride = shape.full_width ? 0 : shape.width;
    value.width = shape.width;
    value.out = out.data();
    PoolCall call;
    call.scores = scores.data();
    call.score_stride = columns;
    call.columns = columns;
    call.columns_per_head = shape.full_width ? columns : shape.per_head;
    call.visible = shape.holes ? visible.data() : nullptr;
    call.offsets = offsets;
    call.values = {&value, 1};
    PoolSegmentsRef(call);
    return out;
  }

  const Shape& shape;
  int columns;
  int row = 0;  // Channels of a value row.
  std::vector<int32_t> offsets;
  std::vector<float> scores, values;
  std::vector<uint16_t> bits;
  std::vector<uint8_t> visible;
};

PoolColumns ColumnsOf(TestDevice& device, const Data& data) {
  const Shape& shape = data.shape;
  return {device.Upload(data.scores), data.columns, data.columns,
          shape.full_width ? data.columns : shape.per_head,
          shape.holes ? device.Upload(data.visible) : nullptr};
}

PoolRows RowsOf(TestDevice& device, const Data& data) {
  const Shape& shape = data.shape;
  const void* values =
      shape.bf16 ? static_cast<const void*>(device.Upload(data.bits)) : device.Upload(data.values);
  return {values, data.row, shape.full_width ? 0 : shape.width, shape.width,
          shape.bf16 ? DType::kBFloat16 : DType::kFloat32};
}

// The means of some of the segments.
std::vector<float> Pool(TestDevice& device, const Data& data,
                        const std::vector<PoolSegment>& segments) {
  const PoolPiecePlan plan = CutPieces(segments);
  const size_t states = plan.pieces.size() * data.columns;
  const PoolSums sums = {device.Allocate<float>(states), device.Allocate<float>(states),
                         device.Allocate<float>(states * data.shape.width)};
  const PoolPieces pieces = {ColumnsOf(device, data), RowsOf(device, data),
                             device.Upload(plan.pieces), static_cast<int32_t>(plan.pieces.size()),
                             sums};
  const size_t outputs = segments.size() * data.columns * data.shape.width;
  const PoolMerge merge = {
      sums,         device.Upload(plan.piece0), static_cast<int32_t>(segments.size()),
      data.columns, data.shape.width,           device.Allocate<float>(outputs)};
  EXPECT_EQ(device.api().pool.pieces(device.stream(), pieces), 0);
  EXPECT_EQ(device.api().pool.merge(device.stream(), merge), 0);
  return device.Download(merge.out, outputs);
}

TEST(DevicePoolTest, WholeSegmentsAreTheirDefinitionAndDoNotMindTheirCompany) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const Data data(shape);
    const std::vector<float> expected = data.Means();
    std::vector<PoolSegment> segments;
    for (int s = 0; s < data.segments(); ++s) {
      segments.push_back({data.offsets[s], data.offsets[s + 1]});
    }
    for (const auto& device : TestDevices()) {
      SCOPED_TRACE(device->name());
      const std::vector<float> got = Pool(*device, data, segments);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 2e-5) << i;
      const size_t size = expected.size() / segments.size();
      for (size_t s = 0; s < segments.size(); ++s) {
        const std::vector<float> alone = Pool(*device, data, {segments[s]});
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), got.begin() + s * size)) << s;
      }
    }
  }
}

TEST(DevicePoolTest, AnOpenSegmentIsOneChainHoweverItArrives) {
  const Shape shape = {"open", {100}, 2, 3, 70};
  const Data data(shape);
  const std::vector<float> expected = data.Means();
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    const PoolColumns columns = ColumnsOf(*device, data);
    const PoolRows rows = RowsOf(*device, data);
    const auto read = [&](const std::vector<int>& cuts) {
      const PoolSums state = {device->Allocate<float>(6), device->Allocate<float>(6),
                              device->Allocate<float>(6 * 70)};
      const std::vector<PoolSums> states = {state};
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const std::vector<PoolPiece> piece = {{0, cuts[i], cuts[i + 1]}};
        const std::vector<uint8_t> begins = {i == 0};
        const PoolAppend append = {columns,
                                   rows,
                                   device->Upload(piece),
                                   device->Upload(begins),
                                   1,
                                   device->Upload(states)};
        EXPECT_EQ(device->api().pool.append(device->stream(), append), 0);
      }
      std::vector<float> sums = device->Download(state.sums, 6 * 70);
      const std::vector<float> s = device->Download(state.s, 6);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] /= s[i / 70];
      return sums;
    };
    const std::vector<float> whole = read({0, 100});
    for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], expected[i], 2e-5) << i;
    EXPECT_EQ(read({0, 1, 2, 50, 99, 100}), whole);
  }
}

TEST(CutPiecesTest, CountsFromTheSegmentsFirstToken) {
  const std::vector<PoolSegment> segments = {{5, 5}, {5, 5 + 256}, {300, 300 + 257}};
  const PoolPiecePlan plan = CutPieces(segments);
  EXPECT_EQ(plan.piece0, (std::vector<int32_t>{0, 0, 1, 3}));
  ASSERT_EQ(plan.pieces.size(), 3u);
  EXPECT_EQ(plan.pieces[2].segment, 2);
  EXPECT_EQ(plan.pieces[2].begin, 556);
  EXPECT_EQ(plan.pieces[2].end, 557);
}

}  // namespace
}  // namespace longview::kernels::cuda
