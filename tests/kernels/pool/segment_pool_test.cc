#include "kernels/pool/segment_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
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
  int heads;
  int per_head;
  int width;
  bool full_width;  // Every column reads all channels.
  DType dtype = DType::kFloat32;
  bool holes = false;
};

const std::vector<Shape> kShapes = {
    {"one token", {1}, 1, 1, 8, false},
    {"empty segments", {0, 3, 0, 5, 0}, 2, 2, 16, false},
    {"language model segments", {16, 16, 16, 7}, 8, 1, 64, false},
    {"image", {196}, 3, 8, 32, false},
    {"odd widths", {33, 1, 65}, 3, 5, 37, false},
    {"folded global row", {257, 12}, 12, 1, 96, true},
    {"wide channels", {40}, 1, 1, 128, false},
    {"bf16", {50, 9}, 2, 3, 48, false, DType::kBFloat16},
    {"masked tokens", {50, 9, 4}, 2, 3, 48, false, DType::kFloat32, true},
};

struct Data {
  explicit Data(const Shape& shape)
      : columns(shape.heads * shape.per_head),
        random(23),
        scores(Total(shape), 1, columns),
        first(Total(shape), 1, shape.full_width ? shape.width : shape.heads * shape.width,
              shape.dtype),
        second(first) {
    scores = Tensor::Random(Total(shape), 1, columns, &random, DType::kFloat32, 3.0f);
    first = Tensor::Random(first.rows(), 1, first.dim(), &random, shape.dtype);
    second = Tensor::Random(first.rows(), 1, first.dim(), &random, shape.dtype);
    offsets.push_back(0);
    for (int n : shape.lengths) offsets.push_back(offsets.back() + n);
    visible.assign(Total(shape), 1);
    for (size_t t = 0; shape.holes && t < visible.size(); ++t) visible[t] = t % 3 != 0;
    // The last segment of a shape with holes is masked as a whole.
    for (int t = offsets[offsets.size() - 2]; shape.holes && t < offsets.back(); ++t)
      visible[t] = 0;
  }
  static int Total(const Shape& shape) {
    int total = 0;
    for (int n : shape.lengths) total += n;
    return total;
  }
  int segments() const { return static_cast<int>(offsets.size()) - 1; }

  int columns;
  std::mt19937 random;
  Tensor scores, first, second;
  std::vector<int32_t> offsets;
  std::vector<uint8_t> visible;
};

// The call and where its two outputs go.
struct Pooled {
  Pooled(const Shape& shape, const Data& data) {
    const size_t size = static_cast<size_t>(data.segments()) * data.columns * shape.width;
    for (auto& o : out) o.assign(size, -7.0f);
    const Tensor* tensors[] = {&data.first, &data.second};
    for (int i = 0; i < 2; ++i) {
      values[i].data = tensors[i]->data();
      values[i].dtype = shape.dtype;
      values[i].row_stride = tensors[i]->dim();
      values[i].head_stride = shape.full_width ? 0 : shape.width;
      values[i].width = shape.width;
      values[i].out = out[i].data();
    }
    call.scores = static_cast<const float*>(data.scores.data());
    call.score_stride = data.columns;
    call.columns = data.columns;
    call.columns_per_head = shape.full_width ? data.columns : shape.per_head;
    call.visible = shape.holes ? data.visible.data() : nullptr;
    call.offsets = data.offsets;
    call.values = values;
  }
  void Run(int threads) {
    std::vector<std::byte> block(MeasurePool(call).total(threads) + kAlignment);
    void* aligned = block.data();
    size_t space = block.size();
    std::align(kAlignment, 1, aligned, space);
    PoolSegments(call, CarveWorkspace(aligned, MeasurePool(call)), Threads(threads));
  }

  PoolValue values[2];
  std::vector<float> out[2];
  PoolCall call;
};

TEST(SegmentPoolTest, EqualsReference) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const Data data(shape);
    Pooled want(shape, data);
    PoolSegmentsRef(want.call);
    Pooled got(shape, data);
    got.Run(3);
    for (int v = 0; v < 2; ++v) {
      for (size_t i = 0; i < want.out[v].size(); ++i) {
        ASSERT_NEAR(got.out[v][i], want.out[v][i], 2e-6) << v << " " << i;
      }
    }
  }
}

TEST(SegmentPoolTest, BitsDoNotDependOnThreadsOrBatch) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const Data data(shape);
    Pooled all(shape, data);
    all.Run(1);
    Pooled threaded(shape, data);
    threaded.Run(4);
    const size_t per_segment = static_cast<size_t>(data.columns) * shape.width;
    for (int v = 0; v < 2; ++v) {
      EXPECT_EQ(0, std::memcmp(all.out[v].data(), threaded.out[v].data(),
                               all.out[v].size() * sizeof(float)));
    }
    for (int s = 0; s < data.segments(); ++s) {
      Pooled alone(shape, data);
      alone.call.offsets = std::span(data.offsets).subspan(s, 2);
      alone.Run(2);
      for (int v = 0; v < 2; ++v) {
        EXPECT_EQ(0, std::memcmp(alone.out[v].data(), all.out[v].data() + s * per_segment,
                                 per_segment * sizeof(float)))
            << "segment " << s;
      }
    }
  }
}

TEST(SegmentPoolTest, AppendingTokensGivesTheMeans) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const Data data(shape);
    Pooled want(shape, data);
    PoolSegmentsRef(want.call);
    const int widths[] = {shape.width, shape.width};
    const size_t per_segment = static_cast<size_t>(data.columns) * shape.width;
    for (int s = 0; s < data.segments(); ++s) {
      std::vector<std::vector<float>> results;
      for (const int step : {1, 5, 1000}) {
        std::vector<std::byte> block(PoolStateBytes(data.columns, widths));
        const PoolState state = CarvePoolState(block.data(), data.columns, widths);
        ResetPoolState(state, data.columns, widths);
        for (int t = data.offsets[s]; t < data.offsets[s + 1]; t += step) {
          const int32_t piece[] = {t, std::min(t + step, data.offsets[s + 1])};
          Pooled part(shape, data);
          part.call.offsets = piece;
          PoolAppend(part.call, std::span(&state, 1), Threads(2));
        }
        std::vector<float> means(2 * per_segment);
        float* const out[] = {means.data(), means.data() + per_segment};
        PoolMeans(state, data.columns, widths, out);
        for (size_t i = 0; i < per_segment; ++i) {
          ASSERT_NEAR(means[i], want.out[0][s * per_segment + i], 2e-6);
          ASSERT_NEAR(means[per_segment + i], want.out[1][s * per_segment + i], 2e-6);
        }
        results.push_back(means);
      }
      EXPECT_EQ(results[0], results[1]);
      EXPECT_EQ(results[0], results[2]);
    }
  }
}

}  // namespace
}  // namespace longview::kernels
