// Closed forms of the cache's memory, against the model's own arithmetic and against a full cache.
#include "kernels/cache/cache_shape.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace longview::kernels {
namespace {

// enwik8-large: 30 layers, d 512, 8 heads, w 512, l 16, r 1.
CacheShape Published(DType dtype) {
  CacheShape shape;
  shape.layers = 30;
  shape.kv_heads = 8;
  shape.Dk = 64;
  shape.Dv = 64;
  shape.dtype = dtype;
  shape.strips = {WindowStrip(512), PageStrip(16, 1)};
  shape.pool_columns = 8;
  shape.pool_widths = {64, 64};
  return shape;
}

CacheShape FullCache(DType dtype) {
  CacheShape shape = Published(dtype);
  shape.strips = {WindowStrip(0)};
  shape.pool_columns = 0;
  return shape;
}

double RowBytes(const CacheShape& shape) {
  return 2.0 * shape.layers * shape.kv_heads * shape.Dk * static_cast<double>(SizeOf(shape.dtype));
}

class Ratios : public ::testing::TestWithParam<DType> {};

TEST_P(Ratios, WholeBlocksCostLittleBesideThePureFormula) {
  const CacheShape shape = Published(GetParam());
  const struct {
    int64_t tokens;
    double over_formula;
    double under_full;
  } rows[] = {{8192, 1.13, 7.05}, {32768, 1.06, 12.1}, {131072, 1.02, 14.8}};
  for (const auto& row : rows) {
    const auto bytes = static_cast<double>(shape.SequenceBytes(0, row.tokens, 1));
    const double formula = (512.0 + static_cast<double>(row.tokens) / 16) * RowBytes(shape);
    const auto full = static_cast<double>(FullCache(GetParam()).SequenceBytes(0, row.tokens, 1));
    EXPECT_EQ(full, static_cast<double>(row.tokens) * RowBytes(shape));
    std::printf("%6ld tokens: %.4f of the formula, a full cache holds %.3f times as much\n",
                static_cast<long>(row.tokens), bytes / formula, full / bytes);
    EXPECT_GE(bytes, formula);
    EXPECT_LE(bytes / formula, row.over_formula);
    EXPECT_GE(full / bytes, row.under_full);
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, Ratios, ::testing::Values(DType::kFloat32, DType::kBFloat16));

TEST(CacheShape, WindowCapacityIsTheSpecifiedNumberOfBlocks) {
  CacheShape shape = Published(DType::kFloat32);
  for (int w = 1; w <= 1500; ++w) {
    shape.strips[0] = WindowStrip(w);
    EXPECT_EQ(shape.MaxBlocks(0), (w + 63 + 63) / 64 + 1) << w;
  }
}

TEST(CacheShape, CapacityCoversTheReachAtEveryLength) {
  CacheShape shape = Published(DType::kFloat32);
  for (const int w : {1, 2, 63, 64, 65, 127, 128, 129, 512, 1000}) {
    shape.strips[0] = WindowStrip(w);
    for (int64_t n = 1; n < 3000; ++n) {
      const int64_t held = (n + 63) / 64 - shape.Blocks(0, n);
      EXPECT_LE(held * 64, std::max<int64_t>(0, n - w)) << w << " " << n;
      EXPECT_LE(held * 64, shape.FirstSlotAt(0, n / 64 * 64)) << w << " " << n;
    }
  }
}

TEST(CacheShape, PrefillAlignmentIsCommonToBlocksAndSegments) {
  CacheShape shape = Published(DType::kFloat32);
  EXPECT_EQ(shape.prefill_alignment(), 64);
  shape.strips[1] = PageStrip(48, 2);
  EXPECT_EQ(shape.prefill_alignment(), 192);
  shape.strips.push_back(PageStrip(5, 1));
  EXPECT_EQ(shape.prefill_alignment(), 960);
}

TEST(CacheShape, NothingReadCostsNothing) {
  EXPECT_EQ(Published(DType::kFloat32).SequenceBytes(0, 0, 7), 0);
}

TEST(CacheShape, MoreTokensOrForksNeverCostLess) {
  const CacheShape shape = Published(DType::kBFloat16);
  for (const int64_t shared : {0, 1, 63, 64, 65, 640, 700, 5000}) {
    for (int forks = 1; forks <= 5; ++forks) {
      int64_t before = 0;
      for (int64_t longest = shared; longest < shared + 1500; longest += 7) {
        const int64_t bytes = shape.SequenceBytes(shared, longest, forks);
        EXPECT_GE(bytes, before);
        EXPECT_GE(bytes, shape.SequenceBytes(0, longest, 1));
        EXPECT_LE(bytes, forks * shape.SequenceBytes(0, longest, 1));
        before = bytes;
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels
