// PlanFull: everything, causal, holes; a split call is the unsplit one up to rounding.
#include "kernels/span/full_planner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "tests/kernels/support/naive.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels {
namespace {

using testing::MakeCall;
using testing::NaiveRow;
using testing::RowsSource;
using testing::Tensor;

struct Batch {
  Tensor q, k, v;
  std::vector<FullSequence> sequences;
};

Batch MakeBatch(std::vector<std::pair<int, int>> shapes, int heads, int kv_heads, int Dk, int Dv,
                DType dtype = DType::kFloat32) {
  std::mt19937 random(5);
  int queries = 0;
  int keys = 0;
  std::vector<FullSequence> sequences;
  for (const auto& [q, k] : shapes) {
    sequences.push_back({queries, q, keys, k, {}});
    queries += q;
    keys += k;
  }
  return {Tensor::Random(queries, heads, Dk, &random, dtype),
          Tensor::Random(keys, kv_heads, Dk, &random, dtype),
          Tensor::Random(keys, kv_heads, Dv, &random, dtype), sequences};
}

void Check(const Batch& batch, FullPattern pattern) {
  const int group = batch.q.heads() / batch.k.heads();
  const float scale = 1.0f / std::sqrt(static_cast<float>(batch.q.dim()));
  const DType dtype = batch.q.dtype();
  for (const Isa isa : testing::IsasToTest(dtype)) {
    SCOPED_TRACE(IsaName(isa));
    pattern.heads = batch.q.heads();
    pattern.tile_rows = TileRows(isa);
    const Plan plan = PlanFull(pattern, batch.sequences);
    Tensor out(batch.q.rows(), batch.q.heads(), batch.v.dim(), dtype);
    Call call = MakeCall(batch.q, &out, scale);
    call.kv_group = group;
    const Source source = RowsSource(batch.k, batch.v);
    call.sources = std::span(&source, 1);
    testing::RunChecked(plan, call, isa, 3);
    for (const FullSequence& sequence : batch.sequences) {
      for (int i = 0; i < sequence.queries; ++i) {
        for (int h = 0; h < batch.q.heads(); ++h) {
          NaiveRow row;
          for (int j = 0; j < sequence.keys; ++j) {
            if (pattern.causal && j - sequence.keys > i - sequence.queries) continue;
            if (!sequence.visible.empty() && sequence.visible[j] == 0) continue;
            const int key = sequence.key_row0 + j;
            row.Add(scale * Dot(batch.q, sequence.query_row0 + i, h, batch.k, key, h / group),
                    batch.v, key, h / group);
          }
          const std::vector<double> want = row.Finish(batch.v.dim());
          for (int d = 0; d < batch.v.dim(); ++d) {
            ASSERT_NEAR(out.At(sequence.query_row0 + i, h, d), want[d],
                        testing::Tolerance(isa, dtype))
                << i << " " << h << " " << d;
          }
        }
      }
    }
  }
}

TEST(FullTest, RaggedBatch) {
  Check(MakeBatch({{1, 1}, {7, 3}, {0, 5}, {60, 130}, {3, 64}, {49, 0}}, 2, 2, 16, 16), {});
}

TEST(FullTest, GroupedHeadsAndOddWidths) {
  Check(MakeBatch({{50, 70}, {5, 200}}, 6, 2, 33, 7), {});
  Check(MakeBatch({{50, 70}}, 4, 1, 1, 128), {});
  Check(MakeBatch({{50, 70}}, 4, 2, 128, 1, DType::kBFloat16), {});
}

TEST(FullTest, Causal) {
  FullPattern pattern;
  pattern.causal = true;
  Check(MakeBatch({{150, 150}, {5, 100}, {1, 1}, {10, 4}}, 2, 2, 16, 16), pattern);
}

TEST(FullTest, Holes) {
  Batch batch = MakeBatch({{9, 200}, {4, 70}}, 2, 2, 16, 16);
  std::vector<uint8_t> holes(200, 1);
  for (int j = 0; j < 200; j += 3) holes[j] = 0;
  for (int j = 64; j < 140; ++j) holes[j] = 0;
  const std::vector<uint8_t> nothing(70, 0);
  batch.sequences[0].visible = holes;
  batch.sequences[1].visible = nothing;
  FullPattern pattern;
  Check(batch, pattern);
  pattern.split = true;
  Check(batch, pattern);
}

// Luna: l rows over all tokens of their sequence, then every token over its l packed rows.
TEST(FullTest, LunaPackAndUnpack) {
  FullPattern pack;
  pack.split = true;
  Check(MakeBatch({{16, kSplitSlots + 300}, {16, 20}, {4, 4}, {1, 1}}, 2, 2, 16, 16), pack);
  Check(MakeBatch({{300, 16}, {20, 16}, {4, 4}, {1, 1}}, 2, 2, 16, 16), {});
}

// Linformer and spatial reduction: all tokens over a short reduced sequence.
TEST(FullTest, ReducedKeys) { Check(MakeBatch({{197, 49}, {50, 256}}, 3, 3, 32, 32), {}); }

TEST(FullTest, SplitAtAbsoluteSlots) {
  FullPattern pattern;
  pattern.split = true;
  const Batch batch = MakeBatch({{2, kSplitSlots}, {3, 2 * kSplitSlots + 77}}, 1, 1, 8, 8);
  Check(batch, pattern);
  const Plan plan = PlanFull(pattern, batch.sequences);
  EXPECT_EQ(plan.tiles.size(), 4u);  // One piece, then three.
  EXPECT_EQ(plan.merges.size(), 3u);
  for (const Merge& merge : plan.merges) EXPECT_EQ(merge.parts, 3);
  int64_t slots = 0;
  for (const Tile& tile : plan.tiles) slots += tile.part >= 0 ? tile.rows * tile.heads : 0;
  EXPECT_EQ(plan.partial_slots, slots);
}

// A NaN among the queries or keys spoils every row that reads it, in one piece or in several.
TEST(PlanFullTest, NotANumberIsNotLost) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const int keys : {1, 70, 5000}) {
      for (const bool in_query : {true, false}) {
        Batch batch = MakeBatch({{3, keys}}, 1, 1, 16, 16, dtype);
        const int bad = in_query ? 1 : keys - 1;
        (in_query ? batch.q : batch.k).SetAt(bad, 0, 5, std::nanf(""));
        for (const Isa isa : testing::IsasToTest(dtype)) {
          SCOPED_TRACE(IsaName(isa));
          const FullPattern pattern = {.split = true, .tile_rows = TileRows(isa)};
          Tensor out(3, 1, 16, dtype);
          Call call = MakeCall(batch.q, &out, 0.25f);
          const Source source = RowsSource(batch.k, batch.v);
          call.sources = std::span(&source, 1);
          testing::RunChecked(PlanFull(pattern, batch.sequences), call, isa);
          for (int row = 0; row < 3; ++row) {
            EXPECT_EQ(std::isnan(out.At(row, 0, 7)), !in_query || row == bad)
                << keys << " keys, row " << row;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels
