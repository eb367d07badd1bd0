// Pooling on a device against its definition: whole segments in pieces, open ones token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/pool/pool_pieces.h"
#include "tests/kernels/cuda/support/test_device.h"
#include "tests/kernels/support/pool_problem.h"

namespace longview::kernels::cuda {
namespace {

using kernels::testing::Pooled;
using kernels::testing::PoolShape;
using kernels::testing::Tensor;
using testing::TestDevice;
using testing::TestDevices;

const std::vector<PoolShape> kShapes = {
    {"one token", {1}, 1, 1, 8},
    {"empty segments", {0, 3, 0, 5, 0}, 2, 2, 16},
    {"pieces whole and cut", {255, 256, 257, 600}, 2, 1, 32},
    {"more columns than a block takes", {33, 300}, 3, 9, 37},
    {"folded global row", {700, 12}, 12, 1, 192, true},
    {"masked tokens", {500, 9, 300}, 2, 3, 48, false, DType::kFloat32, true},
    {"bf16", {50, 290}, 2, 3, 130, false, DType::kBFloat16, true},
};

// In shapes with holes, whole pieces are masked too.
struct Data : kernels::testing::PoolData {
  explicit Data(const PoolShape& shape) : PoolData(shape) {
    for (int t = 0; shape.holes && t <= 260; ++t) visible[t] = 0;
  }

  std::vector<float> Means() const {
    Pooled pooled(*this);
    PoolSegmentsRef(pooled.call);
    return pooled.out[0];
  }
};

template <typename T>
const T* Upload(TestDevice& device, const Tensor& tensor) {
  const auto* values = static_cast<const T*>(tensor.data());
  return device.Upload(std::vector<T>(values, values + tensor.elements()));
}

PoolColumns ColumnsOf(TestDevice& device, const Data& data) {
  const PoolShape& shape = data.shape;
  return {Upload<float>(device, data.scores), shape.columns(), shape.columns(),
          shape.full_width ? shape.columns() : shape.per_head,
          shape.holes ? device.Upload(data.visible) : nullptr};
}

// Values of the shape's type, as elements of `dtype`, which holds them.
PoolRows RowsOf(TestDevice& device, const Data& data, DType dtype) {
  const PoolShape& shape = data.shape;
  const Tensor& tensor = data.values[0];
  std::vector<float> values;
  for (size_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.Get(i));
  const void* uploaded = dtype == DType::kFloat32 ? static_cast<const void*>(device.Upload(values))
                                                  : device.Upload(testing::Rounded(values, dtype));
  return {uploaded, shape.channels(), shape.full_width ? 0 : shape.width, shape.width, dtype};
}

// The means of some of the segments.
std::vector<float> Pool(TestDevice& device, const Data& data,
                        const std::vector<PoolSegment>& segments, DType dtype) {
  const PoolPiecePlan plan = CutPieces(segments);
  const size_t states = plan.pieces.size() * data.shape.columns();
  const PoolSums sums = {device.Allocate<float>(states), device.Allocate<float>(states),
                         device.Allocate<float>(states * data.shape.width)};
  const PoolPieces pieces = {ColumnsOf(device, data), RowsOf(device, data, dtype),
                             device.Upload(plan.pieces), static_cast<int32_t>(plan.pieces.size()),
                             sums};
  const size_t outputs = segments.size() * data.shape.columns() * data.shape.width;
  const PoolMerge merge = {sums,
                           device.Upload(plan.piece0),
                           static_cast<int32_t>(segments.size()),
                           data.shape.columns(),
                           data.shape.width,
                           device.Allocate<float>(outputs)};
  EXPECT_EQ(device.api().pool.pieces(device.stream(), pieces), 0);
  EXPECT_EQ(device.api().pool.merge(device.stream(), merge), 0);
  return device.Download(merge.out, outputs);
}

TEST(DevicePoolTest, WholeSegmentsAreTheirDefinitionAndDoNotDependOnBatchMates) {
  for (const PoolShape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const Data data(shape);
    const std::vector<float> expected = data.Means();
    std::vector<PoolSegment> segments;
    for (int s = 0; s < data.segments(); ++s) {
      segments.push_back({data.offsets[s], data.offsets[s + 1]});
    }
    std::vector<DType> types = {shape.dtype};
    if (shape.dtype == DType::kBFloat16) types.push_back(DType::kFloat16);
    for (const auto& device : TestDevices()) {
      for (const DType dtype : types) {
        SCOPED_TRACE(device->name() + ", " + testing::TypeName(dtype));
        const std::vector<float> got = Pool(*device, data, segments, dtype);
        for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 2e-5) << i;
        const size_t size = expected.size() / segments.size();
        for (size_t s = 0; s < segments.size(); ++s) {
          const std::vector<float> alone = Pool(*device, data, {segments[s]}, dtype);
          EXPECT_TRUE(std::equal(alone.begin(), alone.end(), got.begin() + s * size)) << s;
        }
      }
    }
  }
}

// Two values with the same weights: a state in a row of states, at a layer's place.
TEST(DevicePoolTest, AnOpenSegmentIsOneChainHoweverItArrives) {
  const PoolShape shape = {"open", {100}, 2, 3, 70};
  const Data data(shape);
  const std::vector<float> expected = data.Means();
  constexpr int64_t kLayer = 1000;
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    const PoolColumns columns = ColumnsOf(*device, data);
    const PoolRows rows = RowsOf(*device, data, shape.dtype);
    const auto read = [&](const std::vector<int>& cuts, bool two) {
      const size_t floats = 2 * 6 + 2 * 6 * 70;
      float* const state = device->Allocate<float>(kLayer + floats);
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const std::vector<PoolRun> run = {{state, cuts[i], cuts[i + 1], i == 0, 1}};
        const PoolAppend append = {columns, rows,   two ? rows.data : nullptr, device->Upload(run),
                                   1,       kLayer, columns.columns,           0};
        EXPECT_EQ(device->api().pool.append(device->stream(), append), 0);
      }
      std::vector<float> got = device->Download(state + kLayer, floats);
      const std::vector<float> s(got.begin() + 6, got.begin() + 12);
      got.erase(got.begin(), got.begin() + 12);
      if (two) {
        EXPECT_TRUE(std::equal(got.begin() + 6 * 70, got.end(), got.begin()));
      }
      got.resize(6 * 70);
      for (size_t i = 0; i < got.size(); ++i) got[i] /= s[i / 70];
      return got;
    };
    const std::vector<float> whole = read({0, 100}, true);
    for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], expected[i], 2e-5) << i;
    EXPECT_EQ(read({0, 1, 2, 50, 50, 99, 100}, true), whole);
    EXPECT_EQ(read({0, 37, 100}, false), whole);
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
