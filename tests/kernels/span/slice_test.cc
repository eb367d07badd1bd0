// Composite Slice Transformer: slices with extension and multi-scale positions, both
// directions and boundaries, then slices over slices.
#include "kernels/span/slice_planner.h"

#include <gtest/gtest.h>

#include <utility>

#include "kernels/span/full_planner.h"
#include "tests/kernels/support/check.h"

namespace longview::kernels {
namespace {

using testing::NaiveRow;
using testing::Problem;
using testing::RowsSource;
using testing::Tensor;

// score of a key place: q . (k + T_k[r]) with r its place in the slice's extended key list.
// The zero tokens outside have keys and values of their own per place, or share one.
void CheckSlices(SlicePattern pattern, std::vector<int> lengths, std::vector<int> masked = {},
                 bool one_zero_row = false) {
  std::mt19937 random(31);
  const int L = pattern.slice;
  const int e = pattern.extension;
  int rows = 0;
  std::vector<SliceSequence> batch;
  std::vector<uint8_t> visible(lengths[0], 1);
  for (int m : masked) visible[m] = 0;
  for (size_t s = 0; s < lengths.size(); ++s) {
    batch.push_back({rows, lengths[s], {}});
    if (s == 0 && !masked.empty()) batch.back().visible = visible;
    rows += lengths[s];
  }
  const int heads = pattern.heads;
  const Tensor q = Tensor::Random(rows, heads, 16, &random);
  const Tensor k = Tensor::Random(rows, heads, 16, &random);
  const Tensor v = Tensor::Random(rows, heads, 16, &random);
  const int zero_rows = one_zero_row ? 1 : std::max(2 * e, 1);
  const Tensor zero_k = Tensor::Random(zero_rows, heads, 16, &random);
  const Tensor zero_v = Tensor::Random(zero_rows, heads, 16, &random);
  const Tensor positions =
      Tensor::Random(L + (pattern.autoregressive ? e : 2 * e), heads, 16, &random);
  const float scale = 0.25f;
  Problem problem{&q, 16, scale, 1, {RowsSource(k, v)}, {}};
  if (pattern.zero_boundary) {
    problem.sources.push_back(RowsSource(zero_k, zero_v));
    Source& zeros = problem.sources.back();
    if (one_zero_row) zeros.k_row_stride = zeros.v_row_stride = 0;
  }
  if (pattern.positions) problem.tables.push_back(DottedTable(positions));
  const auto definition = [&](int row, int h) {
    size_t s = 0;
    while (row >= batch[s].row0 + batch[s].tokens) ++s;
    const int i = row - batch[s].row0;
    const int n = batch[s].tokens;
    const int slice = i / L;
    const int places = (n + L - 1) / L * L;
    NaiveRow naive;
    for (int r = 0; r < positions.rows(); ++r) {
      const int p = slice * L - e + r;
      if (pattern.autoregressive && p > i) continue;
      const bool outside = p < 0 || p >= places;
      if (outside && !pattern.zero_boundary) continue;
      if (!outside && (p >= n || (!batch[s].visible.empty() && !visible[p]))) continue;
      const Tensor& key = outside ? zero_k : k;
      const Tensor& value = outside ? zero_v : v;
      const int zero_row = one_zero_row ? 0 : p < 0 ? p + e : e + p - places;
      const int key_row = outside ? zero_row : batch[s].row0 + p;
      double score = Dot(q, row, h, key, key_row, h);
      if (pattern.positions) score += Dot(q, row, h, positions, r, h);
      naive.Add(scale * score, value, key_row, h);
    }
    return naive;
  };
  CheckPlanOutputs(
      [&](int tile_rows) {
        pattern.tile_rows = tile_rows;
        return PlanSlices(pattern, batch);
      },
      problem, testing::Range(0, rows), definition);
}

TEST(SliceTest, BothDirectionsEveryExtension) {
  for (bool autoregressive : {false, true}) {
    for (bool zero : {false, true}) {
      for (auto [L, e] : {std::pair{1, 0}, {1, 1}, {2, 1}, {8, 4}, {16, 16}, {100, 50}}) {
        SCOPED_TRACE(::testing::Message() << autoregressive << zero << " L " << L << " e " << e);
        SlicePattern pattern;
        pattern.heads = 2;
        pattern.slice = L;
        pattern.extension = e;
        pattern.autoregressive = autoregressive;
        pattern.zero_boundary = zero;
        CheckSlices(pattern, {131, 1, L, L + 1, 3 * L});
        if (zero) CheckSlices(pattern, {131, 1, L}, {}, true);
      }
    }
  }
}

TEST(SliceTest, MaskedTokensAndNoPositions) {
  SlicePattern pattern;
  pattern.heads = 1;
  pattern.slice = 8;
  pattern.extension = 4;
  // Slice 2 and its extensions are masked as a whole: its rows see nothing.
  CheckSlices(pattern, {90}, {0, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27});
  pattern.positions = false;
  CheckSlices(pattern, {90, 20}, {5});
}

TEST(SliceTest, SlicesOverEarlierSlices) {
  std::mt19937 random(6);
  const int slices = 75;
  const Tensor q = Tensor::Random(slices, 2, 16, &random);
  const Tensor k = Tensor::Random(slices, 2, 16, &random);
  const Tensor v = Tensor::Random(slices, 2, 16, &random);
  // Row t carries the query of slice t - 1; row 0 has none.
  Tensor shifted(slices, 2, 16);
  for (int t = 1; t < slices; ++t) {
    for (int h = 0; h < 2; ++h) {
      for (int d = 0; d < 16; ++d) shifted.SetAt(t, h, d, q.At(t - 1, h, d));
    }
  }
  const Problem problem{&shifted, 16, 0.25f, 1, {RowsSource(k, v)}, {}};
  const FullSequence sequence{0, slices, 0, slices, {}, 0, 0};
  FullPattern pattern;
  pattern.heads = 2;
  pattern.causal = true;
  pattern.causal_lead = -1;
  CheckPlanOutputs(
      [&](int tile_rows) {
        pattern.tile_rows = tile_rows;
        return PlanFull(pattern, std::span(&sequence, 1));
      },
      problem, testing::Range(0, slices),
      [&](int t, int h) {
        NaiveRow naive;
        for (int j = 0; j < t; ++j) naive.Add(0.25f * Dot(q, t - 1, h, k, j, h), v, j, h);
        return naive;
      });
}

}  // namespace
}  // namespace longview::kernels
