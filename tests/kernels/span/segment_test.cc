// Transformer-LS text: projected keys and group windows, then the class row.
#include "kernels/span/segment_planner.h"

#include <gtest/gtest.h>

#include "kernels/span/full_planner.h"
#include "tests/kernels/support/check.h"

namespace longview::kernels {
namespace {

using testing::NaiveRow;
using testing::Problem;
using testing::RowsSource;
using testing::Tensor;

struct Document {
  int tokens;
  int projected;
  std::vector<int> masked;
};

void CheckText(int w, std::vector<Document> documents, DType dtype = DType::kFloat32) {
  std::mt19937 random(9);
  const int e = w == 0 ? 0 : std::max(w / 2, 1);
  int rows = 0;
  int projected = 0;
  std::vector<SegmentSequence> batch;
  std::vector<std::vector<uint8_t>> visible;
  for (const Document& document : documents) {
    visible.emplace_back(document.tokens, 1);
    for (int m : document.masked) visible.back()[m] = 0;
  }
  for (size_t s = 0; s < documents.size(); ++s) {
    batch.push_back({rows, documents[s].tokens, projected, documents[s].projected, visible[s]});
    rows += documents[s].tokens;
    projected += documents[s].projected;
  }
  const Tensor q = Tensor::Random(rows, 2, 32, &random, dtype);
  const Tensor k = Tensor::Random(rows, 2, 32, &random, dtype);
  const Tensor v = Tensor::Random(rows, 2, 32, &random, dtype);
  const Tensor pk = Tensor::Random(std::max(1, projected), 2, 32, &random, dtype);
  const Tensor pv = Tensor::Random(std::max(1, projected), 2, 32, &random, dtype);
  const float scale = 0.2f;
  const Problem problem{&q, 32, scale, 1, {RowsSource(pk, pv), RowsSource(k, v)}, {}};
  const auto definition = [&](int row, int h) {
    size_t s = 0;
    while (row >= batch[s].row0 + batch[s].tokens) ++s;
    const int t = row - batch[s].row0;
    NaiveRow naive;
    if (!visible[s][t]) return naive;
    for (int j = 0; j < batch[s].projected; ++j) {
      const int key = batch[s].projected_row0 + j;
      naive.Add(scale * Dot(q, row, h, pk, key, h), pv, key, h);
    }
    for (int p = 0; w > 0 && p < batch[s].tokens; ++p) {
      if (!visible[s][p] || p < t / w * w - e || p > t / w * w + w - 1 + e) continue;
      naive.Add(scale * Dot(q, row, h, k, batch[s].row0 + p, h), v, batch[s].row0 + p, h);
    }
    return naive;
  };
  CheckPlanOutputs(
      [&](int tile_rows) {
        return PlanSegments({2, w, e, tile_rows}, batch);
      },
      problem, testing::Range(0, rows), definition);
}

TEST(SegmentTest, WindowsOfEverySize) {
  for (int w : {0, 1, 2, 3, 8, 16, 50, 300}) {
    SCOPED_TRACE(w);
    CheckText(w, {{130, 5, {}}, {1, 1, {}}, {w + 1, 32, {}}, {64, 70, {}}});
  }
}

TEST(SegmentTest, MaskedTokensAndNoProjection) {
  CheckText(8, {{100, 0, {0, 1, 50, 64, 99}}, {9, 3, {0, 1, 2, 3, 4, 5, 6, 7, 8}}});
  CheckText(1, {{100, 4, {3}}}, DType::kBFloat16);
}

TEST(SegmentTest, ClassRowSeesItsOwnKeyThenTheOutputs) {
  std::mt19937 random(2);
  const std::vector<int> lengths = {1, 40, 5000};
  std::vector<FullSequence> batch;
  std::vector<uint8_t> visible(5000, 1);
  for (int t = 4000; t < 4500; ++t) visible[t] = 0;
  int rows = 0;
  for (int s = 0; s < 3; ++s) {
    FullSequence sequence{s, 1, rows, lengths[s], {}, s, 1};
    if (s == 2) sequence.visible = visible;
    batch.push_back(sequence);
    rows += lengths[s];
  }
  const Tensor q = Tensor::Random(3, 2, 32, &random);
  const Tensor own_k = Tensor::Random(3, 2, 32, &random);
  const Tensor own_v = Tensor::Random(3, 2, 32, &random);
  const Tensor context = Tensor::Random(rows, 2, 32, &random);
  const Problem problem{&q, 32, 0.2f, 1, {RowsSource(own_k, own_v), RowsSource(context, context)},
                        {}};
  FullPattern pattern;
  pattern.heads = 2;
  pattern.split = true;
  pattern.own_keys = true;
  CheckPlanOutputs(
      [&](int tile_rows) {
        pattern.tile_rows = tile_rows;
        return PlanFull(pattern, batch);
      },
      problem, {0, 1, 2},
      [&](int row, int h) {
        NaiveRow naive;
        naive.Add(0.2f * Dot(q, row, h, own_k, row, h), own_v, row, h);
        for (int j = 0; j < lengths[row]; ++j) {
          if (row == 2 && !visible[j]) continue;
          const int key = batch[row].key_row0 + j;
          naive.Add(0.2f * Dot(q, row, h, context, key, h), context, key, h);
        }
        return naive;
      });
}

}  // namespace
}  // namespace longview::kernels
