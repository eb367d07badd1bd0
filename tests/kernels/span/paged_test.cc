// Running generations: windows of cached blocks, projected pages, chunks of prefill, beams.
#include "kernels/span/paged_planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/span/full_planner.h"
#include "tests/kernels/support/check.h"
#include "tests/kernels/support/pages.h"

namespace longview::kernels {
namespace {

using testing::DottedTable;
using testing::NaiveRow;
using testing::Pages;
using testing::PageTable;
using testing::Tensor;

constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kDim = 32;
constexpr float kScale = 0.2f;

struct Stream {
  int start;
  int tokens;
};

// Everything a stream ever produced: raw keys of all positions, projected keys of all finished
// segments, and where they lie in pages.
struct Stage {
  Stage(const PagedPattern& pattern, const std::vector<Stream>& streams, DType dtype, DType panels)
      : q(0, kHeads, kDim),
        k(0, kKvHeads, kDim),
        v(k),
        pk(k),
        pv(k),
        window_table(std::max(1, pattern.window), kHeads, kDim),
        page_table(1, kHeads, kDim) {
    std::mt19937 random(77);
    int rows = 0;
    int queries = 0;
    int longest = 0;
    for (const Stream& stream : streams) {
      rows += stream.start + stream.tokens;
      queries += stream.tokens;
      longest = std::max(longest, stream.start + stream.tokens);
    }
    q = Tensor::Random(queries, kHeads, kDim, &random, dtype);
    k = Tensor::Random(rows, kKvHeads, kDim, &random, dtype);
    v = Tensor::Random(rows, kKvHeads, kDim, &random, dtype);
    pk = Tensor::Random(std::max(1, rows * pattern.rank), kKvHeads, kDim, &random, dtype);
    pv = Tensor::Random(std::max(1, rows * pattern.rank), kKvHeads, kDim, &random, dtype);
    window_table = Tensor::Random(window_table.rows(), kHeads, kDim, &random, dtype);
    page_table = Tensor::Random(std::max(1, longest * pattern.rank), kHeads, kDim, &random, dtype);
    Fill(pattern, streams, panels, &random);
  }

  void Fill(const PagedPattern& pattern, const std::vector<Stream>& streams, DType panels,
            std::mt19937* random) {
    const int blocks = k.rows() / kBlockSlots + 2 * static_cast<int>(streams.size()) + 1;
    const int page_blocks = pk.rows() / kBlockSlots + 2 * static_cast<int>(streams.size()) + 1;
    cache = std::make_unique<PageTable>(panels, kDim, kDim, kKvHeads, blocks, random);
    pages = std::make_unique<PageTable>(panels, kDim, kDim, kKvHeads, page_blocks, random);
    int row0 = 0;
    int query0 = 0;
    for (const Stream& stream : streams) {
      const int end = stream.start + (pattern.fresh ? 0 : stream.tokens);
      const int oldest = pattern.window == 0 ? 0 : std::max(0, stream.start - pattern.window + 1);
      PagedSequence sequence{query0, stream.tokens, stream.start, oldest / kBlockSlots,
                             row0 + stream.start};
      cache->Add(k, v, row0, sequence.first_block, end);
      const int finished = (stream.start + stream.tokens) / pattern.segment * pattern.rank;
      pages->Add(pk, pv, row0 * pattern.rank, 0, finished);
      batch.push_back(sequence);
      first_row.push_back(row0);
      row0 += stream.start + stream.tokens;
      query0 += stream.tokens;
    }
  }

  std::vector<Source> Sources(const PagedPattern& pattern, const Tensor& r_w) const {
    std::vector<Source> sources;
    if (pattern.rank > 0) {
      sources.push_back(pages->AsSource());
    }
    sources.push_back(cache->AsSource());
    if (pattern.fresh) sources.push_back(testing::RowsSource(k, v));
    for (size_t s = pattern.rank > 0 ? 1 : 0; s < sources.size(); ++s) {
      if (pattern.window_table >= 0) sources[s].q_add = static_cast<const float*>(r_w.data());
    }
    return sources;
  }

  Tensor q, k, v, pk, pv, window_table, page_table;
  std::unique_ptr<PageTable> cache, pages;
  std::vector<PagedSequence> batch;
  std::vector<int> first_row;
};

// Row `row` at position t of stream s, straight from the definition.
NaiveRow Expected(const Stage& stage, const PagedPattern& pattern, const Tensor& r_w,
                  const Tensor& r_r, size_t s, int row, int t, int h) {
  const auto dot = [&](const Tensor* add, const Tensor& with, int with_row, int with_head) {
    double sum = 0.0;
    for (int d = 0; d < kDim; ++d) {
      const double q = stage.q.At(row, h, d) + (add == nullptr ? 0.0 : add->At(0, h, d));
      sum += q * with.At(with_row, with_head, d);
    }
    return sum;
  };
  const int kv = h * kKvHeads / kHeads;
  const int finished = pattern.rank * (t / pattern.segment);
  NaiveRow naive;
  for (int j = 0; j < finished; ++j) {
    const int key = stage.first_row[s] * pattern.rank + j;
    double score = dot(nullptr, stage.pk, key, kv);
    if (pattern.page_table >= 0) score += dot(nullptr, stage.page_table, finished - 1 - j, h);
    naive.Add(kScale * score, stage.pv, key, kv);
  }
  const bool biased = pattern.window_table >= 0;
  for (int p = pattern.window == 0 ? 0 : std::max(0, t - pattern.window + 1); p <= t; ++p) {
    const int key = stage.first_row[s] + p;
    double score = dot(biased ? &r_w : nullptr, stage.k, key, kv);
    if (biased) score += dot(&r_r, stage.window_table, t - p, h);
    naive.Add(kScale * score, stage.v, key, kv);
  }
  return naive;
}

void CheckStreams(PagedPattern pattern, const std::vector<Stream>& streams,
                  DType dtype = DType::kFloat32) {
  std::mt19937 random(4);
  pattern.heads = kHeads;
  const Tensor r_w = Tensor::Random(1, kHeads, kDim, &random);
  const Tensor r_r = Tensor::Random(1, kHeads, kDim, &random);
  for (const Isa isa : testing::IsasToTest(dtype)) {
    SCOPED_TRACE(IsaName(isa));
    const Stage stage(pattern, streams, dtype, PanelDType(isa));
    pattern.tile_rows = TileRows(isa);
    Tensor out(stage.q.rows(), kHeads, kDim, dtype);
    Call call = testing::MakeCall(stage.q, &out, kScale);
    call.kv_group = kHeads / kKvHeads;
    const std::vector<Source> sources = stage.Sources(pattern, r_w);
    std::vector<Table> tables = {DottedTable(stage.window_table), DottedTable(stage.page_table)};
    tables[0].dot_add = static_cast<const float*>(r_r.data());
    call.sources = sources;
    call.tables = tables;
    testing::RunChecked(PlanPaged(pattern, stage.batch), call, isa, 2);
    for (size_t s = 0; s < streams.size(); ++s) {
      for (int i = 0; i < streams[s].tokens * kHeads; ++i) {
        const int row = stage.batch[s].query_row0 + i / kHeads;
        const int t = streams[s].start + i / kHeads;
        const int h = i % kHeads;
        const std::vector<double> want =
            Expected(stage, pattern, r_w, r_r, s, row, t, h).Finish(kDim);
        for (int d = 0; d < kDim; ++d) {
          ASSERT_NEAR(out.At(row, h, d), want[d], 2 * testing::Tolerance(isa, dtype))
              << "stream " << s << " t " << t << " head " << h;
        }
      }
    }
  }
}

PagedPattern Pattern(int window, int segment, int rank, bool fresh, bool tables) {
  PagedPattern pattern;
  pattern.window = window;
  pattern.segment = segment;
  pattern.rank = rank;
  pattern.fresh = fresh;
  pattern.window_table = tables ? 0 : -1;
  pattern.page_table = tables && rank > 0 ? 1 : -1;
  return pattern;
}

TEST(PagedTest, DecodeSteps) {
  const std::vector<Stream> steps = {{0, 1}, {1, 1}, {63, 1}, {64, 1}, {200, 1}, {517, 1}};
  CheckStreams(Pattern(0, 1, 0, false, false), steps);
  CheckStreams(Pattern(100, 16, 1, false, true), steps);
  CheckStreams(Pattern(64, 4, 2, false, true), steps);
  CheckStreams(Pattern(100, 16, 1, false, false), steps, DType::kBFloat16);
}

TEST(PagedTest, PagesBeyondOneSplit) {
  CheckStreams(Pattern(10, 1, 4, false, false), {{1100, 1}, {1024, 2}, {20, 1}});
}

TEST(PagedTest, ChunksOfPrefill) {
  const std::vector<Stream> chunks = {{0, 1}, {0, 130}, {64, 64}, {192, 77}, {448, 5}};
  CheckStreams(Pattern(0, 1, 0, true, false), chunks);
  CheckStreams(Pattern(50, 8, 2, true, true), chunks);
  CheckStreams(Pattern(300, 16, 1, true, true), chunks, DType::kBFloat16);
}

TEST(PagedTest, HowAPrefillIsCutChangesNoBit) {
  const PagedPattern pattern = Pattern(90, 16, 2, true, true);
  for (const Isa isa : testing::IsasToTest(DType::kFloat32)) {
    SCOPED_TRACE(IsaName(isa));
    const auto run = [&](const Stage& stage, int tile_rows) {
      PagedPattern p = pattern;
      p.heads = kHeads;
      p.tile_rows = tile_rows;
      Tensor out(stage.q.rows(), kHeads, kDim);
      Call call = testing::MakeCall(stage.q, &out, kScale);
      call.kv_group = kHeads / kKvHeads;
      const Tensor r_w(1, kHeads, kDim);
      const std::vector<Source> sources = stage.Sources(p, r_w);
      const std::vector<Table> tables = {DottedTable(stage.window_table),
                                         DottedTable(stage.page_table)};
      call.sources = sources;
      call.tables = tables;
      testing::RunChecked(PlanPaged(p, stage.batch), call, isa, 2);
      return out;
    };
    const Stage whole(pattern, {{0, 300}}, DType::kFloat32, PanelDType(isa));
    const Tensor want = run(whole, TileRows(isa));
    EXPECT_EQ(0, std::memcmp(run(whole, 7).data(), want.data(), want.elements() * sizeof(float)));
    for (const int cut : {64, 128, 256}) {
      // Equal tokens, of which the first `cut` are committed: q holds the rest only.
      Stage rest(pattern, {{cut, 300 - cut}}, DType::kFloat32, PanelDType(isa));
      rest.q = whole.q.Slice(cut, 300 - cut);
      rest.k = whole.k;
      rest.v = whole.v;
      rest.pk = whole.pk;
      rest.pv = whole.pv;
      rest.window_table = whole.window_table;
      rest.page_table = whole.page_table;
      rest.batch.clear();
      rest.first_row.clear();
      std::mt19937 random(cut);
      rest.Fill(pattern, {{cut, 300 - cut}}, PanelDType(isa), &random);
      const Tensor got = run(rest, TileRows(isa));
      const Tensor tail = want.Slice(cut, 300 - cut);
      EXPECT_EQ(0, std::memcmp(got.data(), tail.data(), tail.elements() * sizeof(float)))
          << "cut at " << cut;
    }
  }
}

// LED cross attention: the beams of a document share tiles over its packed keys.
TEST(PagedTest, BeamsShareADocumentsPanels) {
  std::mt19937 random(8);
  const std::vector<int> keys = {130, 5};
  const int beams = 4;
  std::vector<uint8_t> visible(130, 1);
  visible[7] = visible[100] = 0;
  std::vector<FullSequence> batch = {{0, beams, 0, keys[0], visible, 0, 0},
                                     {beams, beams, keys[0], keys[1], {}, 0, 0}};
  const Tensor q = Tensor::Random(2 * beams, 2, 24, &random);
  const Tensor k = Tensor::Random(135, 2, 24, &random);
  const Tensor v = Tensor::Random(135, 2, 40, &random);
  FullPattern pattern;
  pattern.heads = 2;
  pattern.split = true;
  for (const Isa isa : testing::IsasToTest(DType::kFloat32)) {
    SCOPED_TRACE(IsaName(isa));
    const Plan plan = PlanFull(pattern, batch);
    EXPECT_EQ(plan.tiles.size(), 2u);
    const SlotMap& map = plan.sources[0];
    Pages panels(PanelDType(isa), 24, 40, 2, map.slots / kBlockSlots);
    for (int slot = 0; slot < map.slots; ++slot) {
      const int64_t row = SlotRow(plan, map, slot);
      if (row >= 0) panels.Write(slot / kBlockSlots, slot % kBlockSlots, k, v, row);
    }
    Tensor out(2 * beams, 2, 40);
    Tensor packed(2 * beams, 2, 40);
    Call call = testing::MakeCall(q, &out, kScale);
    const Source rows = testing::RowsSource(k, v);
    call.sources = std::span(&rows, 1);
    testing::RunChecked(plan, call, isa);
    call.out = packed.data();
    const Source stored = panels.AsSource(Layout::kPanels);
    call.sources = std::span(&stored, 1);
    testing::RunChecked(plan, call, isa);
    EXPECT_EQ(0, std::memcmp(out.data(), packed.data(), out.elements() * sizeof(float)));
    for (int row = 0; row < 2 * beams; ++row) {
      NaiveRow naive;
      const FullSequence& sequence = batch[row / beams];
      for (int j = 0; j < sequence.keys; ++j) {
        if (!sequence.visible.empty() && !visible[j]) continue;
        const int key = sequence.key_row0 + j;
        naive.Add(kScale * Dot(q, row, 1, k, key, 1), v, key, 1);
      }
      const std::vector<double> want = naive.Finish(40);
      for (int d = 0; d < 40; ++d) {
        ASSERT_NEAR(packed.At(row, 1, d), want[d], testing::Tolerance(isa, DType::kFloat32));
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels
