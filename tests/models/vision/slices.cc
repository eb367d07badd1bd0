#include "tests/models/vision/slices.h"

#include <algorithm>
#include <cmath>

#include "tests/models/run_together.h"

namespace longview::models {
namespace {

constexpr int64_t kWhole = int64_t{1} << 40;

PixelValues Picture(ImageSize size) {
  PixelValues pixels{size, std::vector<float>(size_t{3} * size.height * size.width)};
  uint32_t state = 7;
  for (float& value : pixels.values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return pixels;
}

double Largest(std::span<const float> values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

}  // namespace

void ExpectSlicesMakeTheWhole(const SlicedRun& run, ImageSize size,
                              std::span<const int64_t> slice_tokens, Compute compute,
                              std::span<const size_t> same_bits) {
  const PixelValues picture = Picture(size);
  const SliceResults whole = run({&picture, 1}, kWhole);
  for (const int64_t tokens : slice_tokens) {
    const SliceResults sliced = run({&picture, 1}, tokens);
    ASSERT_EQ(sliced.size(), whole.size());
    for (const size_t r : same_bits) {
      EXPECT_EQ(sliced[r], whole[r]) << tokens << " tokens, result " << r;
    }
    for (size_t r = 0; r < whole.size(); ++r) {
      ASSERT_EQ(sliced[r].size(), whole[r].size());
      const double allowed = compute == Compute::kFp32 ? 2e-5 : 0.03 * Largest(whole[r]);
      EXPECT_LE(LargestDifference(sliced[r], whole[r]), allowed)
          << tokens << " tokens, result " << r;
    }
  }
}

void ExpectBatchKeepsBits(const SlicedRun& run, ImageSize size) {
  constexpr int64_t kTokens = 500;
  const std::vector<PixelValues> pictures = {Picture({64, 96}),   Picture(size),
                                             Picture({64, 64}),   Picture({96, 64}),
                                             Picture({160, 320}), Picture({64, 64})};
  const SliceResults together = run(pictures, kTokens);
  const size_t each = together.size() / pictures.size();
  for (size_t i = 0; i < pictures.size(); ++i) {
    const SliceResults alone = run({&pictures[i], 1}, kTokens);
    ASSERT_EQ(alone.size(), each);
    for (size_t r = 0; r < each; ++r) EXPECT_EQ(alone[r], together[i * each + r]) << i << " " << r;
  }
}

}  // namespace longview::models
