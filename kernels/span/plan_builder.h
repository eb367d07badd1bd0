// Turns "these rows see these keys" into a Plan: lays slots out, cuts key runs at block
// borders into full and partial spans, splits long key lists into mergeable pieces, counts
// work. Planners describe their pattern through it; nothing else writes a Plan.
//
// Thread-compatible; one builder makes one plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"

namespace longview::kernels {

// A tile's rows and heads; see Tile.
struct TileRowsOf {
  int32_t row0 = 0;
  int32_t row_step = 1;
  int32_t rows = 0;
  int32_t seq = 0;
  int32_t head0 = 0;
  int32_t heads = 0;
};

enum class Split : bool { kNo = false, kSplit = true };

class PlanBuilder {
 public:
  PlanBuilder() = default;
  PlanBuilder(const PlanBuilder&) = delete;
  PlanBuilder& operator=(const PlanBuilder&) = delete;

  // A source read by query heads [head0, head0 + heads). Returns its index.
  int AddSource(int32_t head0, int32_t heads);

  // Starts the next sequence's grid in `source`: the first free multiple of kBlockSlots.
  int32_t NewGrid(int source);

  // Appends rows row0 + i * row_step, i < rows, right after the source's last slot. Returns
  // the first slot.
  int32_t AddRows(int source, int32_t row0, int32_t row_step, int32_t rows);

  // Marks a slot as a hole, seen by no row.
  void AddHole(int source, int32_t slot);

  // Opens a tile; AddKeys calls follow in execution order, then EndTile.
  // REQUIRES: 1 <= rows <= kMaxTileRows.
  void BeginTile(const TileRowsOf& rows);

  // Row i of the open tile sees the keys seen[i].lo <= p < seen[i].hi of the grid that starts
  // at slot `grid` of `source`. `bias` counts i from the tile's row 0 and j from key 0 of the
  // grid; null: none. With kSplit the keys are pieces of their own, cut at multiples of
  // kSplitSlots of the grid and merged in order; the other keys between two pieces are one.
  void AddKeys(int source, int32_t grid, std::span<const Interval> seen, const Bias* bias = nullptr,
               Split split = Split::kNo);

  // Every row sees keys [lo, hi) of the grid.
  void AddAllKeys(int source, int32_t grid, int32_t lo, int32_t hi, const Bias* bias = nullptr,
                  Split split = Split::kNo);

  void EndTile();

  // The finished plan. The builder is spent.
  Plan Finish();

 private:
  struct SourceParts {
    std::vector<SlotRun> runs;
    std::vector<int32_t> holes;
    int32_t head0 = 0;
    int32_t heads = 0;
    int32_t used = 0;  // Slots.
  };
  // The mergeable piece a span belongs to; neighbours with equal pieces share it.
  struct Piece {
    int32_t source = -1;
    int32_t grid = -1;
    int32_t cell = -1;  // Number of kSplitSlots cells before it on its grid.
    bool operator==(const Piece&) const = default;
  };
  struct OpenSpan {
    Span span;
    Piece piece;
  };

  void AddSpan(int source, int32_t grid, Interval keys, std::span<const Interval> seen,
               const Bias* bias, Split split);
  bool HasHoles(int source, int32_t first, int32_t last) const;
  void CountUseful(int source, int32_t grid, std::span<const Interval> seen);
  void EmitTile(std::span<const OpenSpan> spans, int32_t part);
  void FlattenSources();
  void SortItems();

  Plan plan_;
  std::vector<SourceParts> sources_;
  std::vector<int64_t> tile_work_;  // Executed pairs per head, one per tile.
  TileRowsOf open_;
  std::vector<OpenSpan> open_spans_;
  std::vector<Interval> all_;  // Scratch of AddAllKeys.
};

}  // namespace longview::kernels
