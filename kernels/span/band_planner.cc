#include "kernels/span/band_planner.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

// Rows of a tile further apart than this (in keys of the strand) would share few keys.
constexpr int32_t kMaxGap = 32;

// Neighbouring heads of one dilation.
struct HeadRun {
  int32_t head0;
  int32_t heads;
  int32_t dilation;
  int source;
};

// A query of one strand: its place among the strand's keys and its row of q.
struct Query {
  int32_t at;
  int32_t row;
};

// The tokens phase, phase + dilation, ... of one sequence: an ordinary band.
struct Strand {
  const BandSequence* sequence;
  int32_t seq;
  int32_t phase;
  int32_t dilation;
  int32_t keys;
  int32_t grid;
  int32_t global_grid;
  const std::vector<int32_t>* globals;

  int32_t Position(int32_t at) const { return phase + at * dilation; }
  uint8_t Role(int32_t at) const {
    return sequence->roles.empty() ? uint8_t{kLocalToken} : sequence->roles[Position(at)];
  }
};

std::vector<HeadRun> HeadRuns(const BandPattern& pattern, PlanBuilder* builder) {
  std::vector<HeadRun> runs;
  for (int32_t h = 0; h < pattern.heads; ++h) {
    const int32_t dilation = pattern.dilation.empty() ? 1 : pattern.dilation[h];
    KERNEL_CHECK(dilation >= 1);
    if (runs.empty() || runs.back().dilation != dilation) runs.push_back({h, 0, dilation, 0});
    ++runs.back().heads;
  }
  for (HeadRun& run : runs) run.source = builder->AddSource(run.head0, run.heads);
  return runs;
}

std::vector<Query> StrandQueries(const Strand& strand) {
  std::vector<Query> queries;
  const BandSequence& sequence = *strand.sequence;
  if (sequence.wanted == nullptr) {
    for (int32_t at = 0; at < strand.keys; ++at) {
      queries.push_back({at, sequence.row0 + strand.Position(at)});
    }
    return queries;
  }
  for (size_t i = 0; i < sequence.wanted->size(); ++i) {
    const int32_t offset = (*sequence.wanted)[i] - strand.phase;
    if (offset < 0 || offset % strand.dilation != 0) continue;
    queries.push_back({offset / strand.dilation, sequence.query_row0 + static_cast<int32_t>(i)});
  }
  return queries;
}

// Length of the tile that starts at queries[0]: near keys, evenly spaced rows.
size_t TileLength(std::span<const Query> queries, int32_t tile_rows) {
  size_t length = 1;
  while (length < queries.size() && length < static_cast<size_t>(tile_rows)) {
    const Query& last = queries[length - 1];
    if (queries[length].at - last.at > kMaxGap) break;
    if (queries[length].row - last.row != queries[1].row - queries[0].row) break;
    ++length;
  }
  return length;
}

std::span<const Query> TrimGlobals(const Strand& strand, std::span<const Query> tile) {
  while (!tile.empty() && strand.Role(tile.front().at) == kGlobalToken) tile = tile.subspan(1);
  while (!tile.empty() && strand.Role(tile.back().at) == kGlobalToken) {
    tile = tile.first(tile.size() - 1);
  }
  return tile;
}

void AddTile(const BandPattern& pattern, const HeadRun& heads, const Strand& strand,
             std::span<const Query> queries, PlanBuilder* builder) {
  queries = TrimGlobals(strand, queries);
  if (queries.empty()) return;
  TileRowsOf rows;
  rows.row0 = queries[0].row;
  rows.row_step = queries.size() > 1 ? queries[1].row - queries[0].row : 1;
  rows.rows = static_cast<int32_t>(queries.size());
  rows.seq = strand.seq;
  rows.head0 = heads.head0;
  rows.heads = heads.heads;
  std::vector<Interval> globals;
  std::vector<Interval> window;
  for (const Query& query : queries) {
    const bool masked = strand.Role(query.at) == kMaskedToken;
    const auto end = pattern.causal_globals
                         ? std::upper_bound(strand.globals->begin(), strand.globals->end(),
                                            strand.Position(query.at))
                         : strand.globals->end();
    globals.push_back({0, masked ? 0 : static_cast<int32_t>(end - strand.globals->begin())});
    const int32_t lo = std::max(0, query.at - pattern.window_left);
    const int32_t hi = static_cast<int32_t>(
        std::min<int64_t>(strand.keys, int64_t{query.at} + pattern.window_right + 1));
    window.push_back(masked ? Interval{0, 0} : Interval{lo, hi});
  }
  builder->BeginTile(rows);
  builder->AddKeys(0, strand.global_grid, globals);
  builder->AddKeys(heads.source, strand.grid, window);
  builder->EndTile();
}

// Lays out one residue class of one sequence and cuts its queries into tiles.
void AddStrand(const BandPattern& pattern, const HeadRun& heads, Strand strand,
               PlanBuilder* builder) {
  strand.grid = builder->NewGrid(heads.source);
  builder->AddRows(heads.source, strand.sequence->row0 + strand.phase, strand.dilation,
                   strand.keys);
  for (int32_t at = 0; !strand.sequence->roles.empty() && at < strand.keys; ++at) {
    if (strand.Role(at) != kLocalToken) builder->AddHole(heads.source, strand.grid + at);
  }
  const std::vector<Query> queries = StrandQueries(strand);
  std::span<const Query> rest = queries;
  while (!rest.empty()) {
    const size_t length = TileLength(rest, pattern.tile_rows);
    AddTile(pattern, heads, strand, rest.first(length), builder);
    rest = rest.subspan(length);
  }
}

}  // namespace

std::vector<int32_t> GlobalPositions(const BandSequence& sequence) {
  std::vector<int32_t> positions;
  for (size_t i = 0; i < sequence.roles.size(); ++i) {
    if (sequence.roles[i] == kGlobalToken) positions.push_back(static_cast<int32_t>(i));
  }
  return positions;
}

Plan PlanBand(const BandPattern& pattern, std::span<const BandSequence> batch) {
  KERNEL_CHECK(pattern.window_left >= 0 && pattern.window_right >= 0);
  KERNEL_CHECK(pattern.dilation.empty() ||
               static_cast<int32_t>(pattern.dilation.size()) == pattern.heads);
  PlanBuilder builder;
  builder.AddSource(0, pattern.heads);
  const std::vector<HeadRun> head_runs = HeadRuns(pattern, &builder);
  for (size_t s = 0; s < batch.size(); ++s) {
    const BandSequence& sequence = batch[s];
    KERNEL_CHECK(sequence.tokens >= 1);
    KERNEL_CHECK(sequence.roles.empty() ||
                 sequence.roles.size() == static_cast<size_t>(sequence.tokens));
    const std::vector<int32_t> globals =
        sequence.globals != nullptr ? *sequence.globals : GlobalPositions(sequence);
    const int32_t global_grid = builder.NewGrid(0);
    for (const int32_t position : globals) builder.AddRows(0, sequence.row0 + position, 1, 1);
    for (const HeadRun& heads : head_runs) {
      for (int32_t phase = 0; phase < std::min(heads.dilation, sequence.tokens); ++phase) {
        const int32_t keys = (sequence.tokens - phase - 1) / heads.dilation + 1;
        AddStrand(pattern, heads,
                  {&sequence, static_cast<int32_t>(s), phase, heads.dilation, keys, 0, global_grid,
                   &globals},
                  &builder);
      }
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
