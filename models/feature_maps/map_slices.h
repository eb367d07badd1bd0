// A feature map that goes through long-short attention in slices: some rows of its windows at a
// time, with the rows above and below among the keys. Projections of the whole map never exist.
//
// A token's keys are gathered as in a plan of the whole map, so its bits are the same, but for
// windows so small that several share a block of keys: how those lie depends on the cuts, and so on
// the map's size alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/feature_maps/map_plan.h"

namespace longview::models {

// Ranks of map tokens in ChunkMap order; rows of a slice in memory: [class tokens | loaded tokens].
struct LongShortSlice {
  int64_t load_begin = 0, load_end = 0;  // Rows that its queries need.
  int64_t begin = 0, end = 0;            // Queries.
  size_t shape = 0;                      // Index of its shape in the map's.
};

// The common shape of slices in the middle of a map: a map of the loaded rows, of whose window rows
// [group0, group0 + groups) are queries.
struct LongShortSliceShape {
  int height = 0;
  int width = 0;
  int group0 = 0;
  int groups = 0;
  bool operator==(const LongShortSliceShape&) const = default;
};

struct LongShortMap {
  int64_t tokens = 0;
  std::vector<LongShortSlice> slices;
  std::vector<LongShortSliceShape> shapes;

  // The most rows of a slice, class tokens included.
  int64_t rows(const LongShortPattern& pattern) const;
};

// Class rows that see the map's keys instead of its outputs need them all at once.
bool CanSlice(const LongShortPattern& pattern);

// Slices of at least `tokens` queries each, but for the last. REQUIRES: CanSlice.
LongShortMap SliceMap(const LongShortPattern& pattern, int height, int width, int64_t tokens);

// The plan of a shape's queries, `tokens` of LongShortPlan; the class rows' is empty.
LongShortPlan PlanSlice(const LongShortPattern& pattern, const LongShortSliceShape& shape,
                        int tile_rows);

}  // namespace longview::models
