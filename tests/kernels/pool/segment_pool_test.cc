#include "kernels/pool/segment_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/kernels/support/pool_problem.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels {
namespace {

using testing::PoolData;
using testing::Pooled;
using testing::PoolShape;
using testing::Threads;

const std::vector<PoolShape> kShapes = {
    {"one token", {1}, 1, 1, 8},
    {"empty segments", {0, 3, 0, 5, 0}, 2, 2, 16},
    {"language model segments", {16, 16, 16, 7}, 8, 1, 64},
    {"image", {196}, 3, 8, 32},
    {"odd widths", {33, 1, 65}, 3, 5, 37},
    {"folded global row", {257, 12}, 12, 1, 96, true},
    {"blocks of tokens", {64, 65, 128, 1, 200}, 5, 2, 40},
    {"many columns", {70, 3}, 75, 2, 8},
    {"wide channels", {40}, 1, 1, 128},
    {"bf16", {50, 9}, 2, 3, 48, false, DType::kBFloat16},
    {"masked tokens", {50, 9, 4}, 2, 3, 48, false, DType::kFloat32, true},
};

constexpr int kValueSets = 2;

void Pool(const PoolCall& call, int threads) {
  std::vector<std::byte> block(MeasurePool(call).total(threads) + kAlignment);
  void* aligned = block.data();
  size_t space = block.size();
  std::align(kAlignment, 1, aligned, space);
  PoolSegments(call, CarveWorkspace(aligned, MeasurePool(call)), Threads(threads));
}

TEST(SegmentPoolTest, EqualsReference) {
  for (const PoolShape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const PoolData data(shape, kValueSets);
    Pooled want(data);
    PoolSegmentsRef(want.call);
    Pooled got(data);
    Pool(got.call, 3);
    for (int v = 0; v < kValueSets; ++v) {
      for (size_t i = 0; i < want.out[v].size(); ++i) {
        ASSERT_NEAR(got.out[v][i], want.out[v][i], 2e-6) << v << " " << i;
      }
    }
  }
}

TEST(SegmentPoolTest, BitsDoNotDependOnThreadsOrBatch) {
  for (const PoolShape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const PoolData data(shape, kValueSets);
    Pooled all(data);
    Pool(all.call, 1);
    Pooled threaded(data);
    Pool(threaded.call, 4);
    const size_t per_segment = static_cast<size_t>(shape.columns()) * shape.width;
    for (int v = 0; v < kValueSets; ++v) {
      EXPECT_EQ(0, std::memcmp(all.out[v].data(), threaded.out[v].data(),
                               all.out[v].size() * sizeof(float)));
    }
    for (int s = 0; s < data.segments(); ++s) {
      Pooled alone(data);
      alone.call.offsets = std::span(data.offsets).subspan(s, 2);
      Pool(alone.call, 2);
      for (int v = 0; v < kValueSets; ++v) {
        EXPECT_EQ(0, std::memcmp(alone.out[v].data(), all.out[v].data() + s * per_segment,
                                 per_segment * sizeof(float)))
            << "segment " << s;
      }
    }
  }
}

TEST(SegmentPoolTest, AppendingTokensGivesTheMeans) {
  for (const PoolShape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const PoolData data(shape, kValueSets);
    Pooled want(data);
    PoolSegmentsRef(want.call);
    const int widths[] = {shape.width, shape.width};
    const size_t per_segment = static_cast<size_t>(shape.columns()) * shape.width;
    for (int s = 0; s < data.segments(); ++s) {
      std::vector<std::vector<float>> results;
      for (const int step : {1, 5, 1000}) {
        std::vector<std::byte> block(PoolStateBytes(shape.columns(), widths));
        const PoolState state = CarvePoolState(block.data(), shape.columns(), widths);
        ResetPoolState(state, shape.columns(), widths);
        for (int t = data.offsets[s]; t < data.offsets[s + 1]; t += step) {
          const int32_t piece[] = {t, std::min(t + step, data.offsets[s + 1])};
          Pooled part(data);
          part.call.offsets = piece;
          PoolAppend(part.call, std::span(&state, 1), Threads(2));
        }
        std::vector<float> means(2 * per_segment);
        float* const out[] = {means.data(), means.data() + per_segment};
        PoolMeans(state, shape.columns(), widths, out);
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

// Values that come a few rows at a time, weights in the scores' own memory.
TEST(SegmentPoolTest, PartsAddUpToTheSameBits) {
  for (const PoolShape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    const PoolData data(shape, kValueSets);
    Pooled want(data);
    Pool(want.call, 1);
    Pooled got(data);
    std::vector<float> weights(got.call.scores,
                               got.call.scores + int64_t{data.tokens()} * shape.columns());
    got.call.scores = weights.data();
    WeighSegments(got.call, weights.data(), Threads(3));
    const size_t per_segment = static_cast<size_t>(shape.columns()) * shape.width;
    for (int s = 0; s < data.segments(); ++s) {
      Pooled part(data);
      for (int v = 0; v < kValueSets; ++v) {
        std::fill_n(part.out[v].begin(), per_segment, 0.0f);
      }
      for (int t = data.offsets[s]; t < data.offsets[s + 1]; t += 7) {
        const int32_t piece[] = {t, std::min(t + 7, data.offsets[s + 1])};
        part.call.offsets = piece;
        AddWeighted(part.call, weights.data() + int64_t{t} * shape.columns(), Threads(2));
      }
      for (int v = 0; v < kValueSets; ++v) {
        EXPECT_EQ(0, std::memcmp(part.out[v].data(), want.out[v].data() + s * per_segment,
                                 per_segment * sizeof(float)))
            << "segment " << s;
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels
