// Slices of running generations: chunks of prefill and decode steps over cached blocks.
#include "kernels/span/paged_slice_planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/support/check.h"
#include "tests/kernels/support/pages.h"

namespace longview::kernels {
namespace {

using testing::NaiveRow;
using testing::PageTable;
using testing::Tensor;

constexpr int kHeads = 2;
constexpr int kDim = 24;
constexpr float kScale = 0.2f;

struct Stream {
  int start;
  int tokens;
};

// Keys of all positions of several streams, those before `start` (or all) also in blocks.
struct Stage {
  Stage(const SlicePattern& pattern, bool fresh, const std::vector<Stream>& streams, DType dtype,
        DType panels)
      : q(0, kHeads, kDim), k(q), v(q), zero_k(q), zero_v(q), positions(q) {
    std::mt19937 random(83);
    int rows = 0, queries = 0;
    for (const Stream& stream : streams) {
      rows += stream.start + stream.tokens;
      queries += stream.tokens;
    }
    q = Tensor::Random(queries, kHeads, kDim, &random, dtype);
    k = Tensor::Random(rows, kHeads, kDim, &random, dtype);
    v = Tensor::Random(rows, kHeads, kDim, &random, dtype);
    const int zeros = std::max(pattern.extension, 1);
    zero_k = Tensor::Random(zeros, kHeads, kDim, &random);
    zero_v = Tensor::Random(zeros, kHeads, kDim, &random);
    positions = Tensor::Random(pattern.slice + pattern.extension, kHeads, kDim, &random, dtype);
    const int blocks = rows / kBlockSlots + 2 * static_cast<int>(streams.size());
    cache = std::make_unique<PageTable>(panels, kDim, kDim, kHeads, blocks, &random);
    int row0 = 0, query0 = 0;
    for (const Stream& stream : streams) {
      const int end = stream.start + (fresh ? 0 : stream.tokens);
      const int slice0 = stream.start / pattern.slice * pattern.slice;
      const int first = std::max(0, slice0 - pattern.extension) / kBlockSlots;
      cache->Add(k, v, row0, first, end);
      batch.push_back({query0, stream.tokens, stream.start, first, row0 + stream.start});
      first_row.push_back(row0);
      row0 += stream.start + stream.tokens;
      query0 += stream.tokens;
    }
  }

  std::vector<Source> Sources(const SlicePattern& pattern, bool fresh) const {
    std::vector<Source> sources;
    if (pattern.zero_boundary && pattern.extension > 0) {
      sources.push_back(testing::RowsSource(zero_k, zero_v));
    }
    sources.push_back(cache->AsSource());
    if (fresh) sources.push_back(testing::RowsSource(k, v));
    return sources;
  }

  Tensor q, k, v, zero_k, zero_v, positions;
  std::unique_ptr<PageTable> cache;
  std::vector<PagedSequence> batch;
  std::vector<int> first_row;
};

// Position t of stream s, straight from the definition: places r of the slice's extended keys.
NaiveRow Expected(const Stage& stage, const SlicePattern& pattern, size_t s, int row, int t,
                  int h) {
  const int slice0 = t / pattern.slice * pattern.slice;
  NaiveRow naive;
  for (int r = 0; r < pattern.slice + pattern.extension; ++r) {
    const int p = slice0 - pattern.extension + r;
    if (p > t || (p < 0 && !pattern.zero_boundary)) continue;
    const Tensor& keys = p < 0 ? stage.zero_k : stage.k;
    const Tensor& values = p < 0 ? stage.zero_v : stage.v;
    const int key = p < 0 ? p + pattern.extension : stage.first_row[s] + p;
    double score = Dot(stage.q, row, h, keys, key, h);
    if (pattern.positions) score += Dot(stage.q, row, h, stage.positions, r, h);
    naive.Add(kScale * score, values, key, h);
  }
  return naive;
}

void CheckStreams(SlicePattern pattern, bool fresh, const std::vector<Stream>& streams,
                  DType dtype = DType::kFloat32) {
  pattern.heads = kHeads;
  pattern.autoregressive = true;
  for (const Isa isa : testing::IsasToTest(dtype)) {
    SCOPED_TRACE(IsaName(isa));
    const Stage stage(pattern, fresh, streams, dtype, PanelDType(isa));
    pattern.tile_rows = TileRows(isa);
    Tensor out(stage.q.rows(), kHeads, kDim, dtype);
    Call call = testing::MakeCall(stage.q, &out, kScale);
    const std::vector<Source> sources = stage.Sources(pattern, fresh);
    const std::vector<Table> tables = {testing::DottedTable(stage.positions)};
    call.sources = sources;
    call.tables = tables;
    testing::RunChecked(PlanPagedSlices(pattern, fresh, stage.batch), call, isa, 2);
    for (size_t s = 0; s < streams.size(); ++s) {
      for (int i = 0; i < streams[s].tokens * kHeads; ++i) {
        const int row = stage.batch[s].query_row0 + i / kHeads, h = i % kHeads;
        const int t = streams[s].start + i / kHeads;
        const std::vector<double> want = Expected(stage, pattern, s, row, t, h).Finish(kDim);
        for (int d = 0; d < kDim; ++d) {
          ASSERT_NEAR(out.At(row, h, d), want[d], 2 * testing::Tolerance(isa, dtype))
              << "stream " << s << " t " << t << " head " << h;
        }
      }
    }
  }
}

struct Lengths {
  int slice, extension;
};
constexpr Lengths kLengths[] = {{1, 0}, {1, 1}, {4, 4}, {16, 8}, {48, 16}, {100, 100}};

TEST(PagedSliceTest, ChunksOfPrefill) {
  for (const auto& [slice, extension] : kLengths) {
    for (const bool zero : {false, true}) {
      SCOPED_TRACE(::testing::Message() << slice << " " << extension << " " << zero);
      SlicePattern pattern;
      pattern.slice = slice;
      pattern.extension = extension;
      pattern.zero_boundary = zero;
      CheckStreams(pattern, true, {{0, 1}, {0, 131}, {64, 70}, {192, 128}, {128, 3}});
    }
  }
}

TEST(PagedSliceTest, DecodingAtEveryPlace) {
  for (const auto& [slice, extension] : kLengths) {
    for (const bool zero : {false, true}) {
      SCOPED_TRACE(::testing::Message() << slice << " " << extension << " " << zero);
      SlicePattern pattern;
      pattern.slice = slice;
      pattern.extension = extension;
      pattern.zero_boundary = zero;
      CheckStreams(pattern, false,
                   {{0, 1}, {slice - 1, 1}, {slice, 1}, {3 * slice, 1}, {200, 1}, {40, 24}});
    }
  }
}

TEST(PagedSliceTest, WithoutPositionsAndInBf16) {
  SlicePattern pattern;
  pattern.slice = 12;
  pattern.extension = 6;
  CheckStreams(pattern, true, {{64, 60}, {0, 5}}, DType::kBFloat16);
  CheckStreams(pattern, false, {{64, 1}, {77, 1}}, DType::kBFloat16);
  pattern.positions = false;
  CheckStreams(pattern, true, {{64, 60}, {0, 5}});
  CheckStreams(pattern, false, {{64, 1}, {77, 1}});
}

}  // namespace
}  // namespace longview::kernels
