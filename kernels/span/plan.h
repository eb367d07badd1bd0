// A plan says which queries see which keys. Planners build it on the host, once per batch
// shape; the executor runs it for every layer with the same pattern.
//
// Flat arrays of int32 PODs, CSR style: indices only, no pointers, so that a plan can be
// uploaded to a GPU as it is. All index arithmetic lives in the planners; the executor sees
// runs, intervals and strides.
//
// Terms. A *row* is a row of a tensor the call hands over (a token of the ragged batch). A
// *slot* is a key's place on the 64-slot grid of its source; every sequence starts its own
// grid, at a multiple of 64, so that block borders depend on the sequence alone.
#pragma once

#include <cstdint>
#include <vector>

namespace longview::kernels {

inline constexpr int kBlockSlots = 64;   // Keys of a block.
inline constexpr int kMaxTileRows = 64;  // Queries of a tile, any instruction set.
inline constexpr int kMaxHeadDim = 128;
inline constexpr int kSplitSlots = 4096;  // Splitting calls cut at multiples of this slot.
inline constexpr int kMaxSources = 64;    // Sources of one call.

// A run of query rows of one sequence, the same span list for each.
struct Tile {
  int32_t row0;      // First query row of the batch tensor.
  int32_t row_step;  // Distance of neighbouring rows; above 1 only for dilation.
  int32_t rows;      // 1 .. kMaxTileRows.
  int32_t seq;       // Owning sequence (paged sources look up its block list).
  int32_t head0;     // Heads [head0, head0 + heads) use this tile.
  int32_t heads;
  int32_t span0;  // Its spans, in execution order: [span0, span0 + spans).
  int32_t spans;
  int32_t part;  // -1: final output. Else the first partial-state slot: row i of head h
                 // writes part + (h - head0) * rows + i.
  // A tile without spans writes zeros and reads no query.
};

// A run of key slots of one source. A multiset: a run may occur twice in a tile. The
// executor adds up block by block, so where a run is cut other than at multiples of
// kBlockSlots, the cut must come from the pattern alone, never from where a tile ends.
struct Span {
  int32_t source;    // Index into Call::sources.
  int32_t key0;      // First slot.
  int32_t key_step;  // Distance of neighbouring slots; 1 for panels and pages.
  int32_t keys;      // Number of slots.
  int32_t interval;  // -1: every row sees every key. Else the offset of `rows` Intervals.
  int32_t holes;     // 1: consult the source's validity bitmap.
  int32_t bias;      // -1, or index into biases.
};

// Row i of the tile sees keys lo <= j < hi of the span, j counted from key0. hi <= lo: none.
struct Interval {
  int32_t lo;
  int32_t hi;
};

enum BiasKind : int32_t {
  kAdded = 0,   // score += table[entry]
  kDotted = 1,  // score += scale * (q + dot_add) . table[entry]
};

// entry = base + row_mul * ((i + row_phase) / row_div) + key_mul * j, i tile-relative and
// j span-relative. Entries outside the table are legal for masked keys and never read.
struct Bias {
  int32_t kind;  // BiasKind.
  int32_t id;    // Index into the call's tables.
  int32_t base;
  int32_t row_mul;
  int32_t row_div;  // At least 1.
  int32_t row_phase;
  int32_t key_mul;
};

// A unit of parallel work. Items write disjoint memory.
struct Item {
  int32_t tile;
  int32_t head;
};

// Rows of a source's tensor that fill neighbouring slots: slot0 + i holds row
// row0 + i * row_step, i < rows. Gathered global tokens are runs of one row; the residue
// classes of a dilated head are runs with row_step = dilation.
struct SlotRun {
  int32_t slot0;
  int32_t row0;
  int32_t row_step;
  int32_t rows;
};

// How one source's slots relate to rows. Slots that no run fills do not exist: no span
// contains them. Paged sources have no runs: their slots count from 0 in every sequence.
struct SlotMap {
  int32_t slots;  // Size of the grid, a multiple of kBlockSlots; 0 for paged sources.
  int32_t run0;   // Runs [run0, run0 + runs), ascending in slot0, disjoint.
  int32_t runs;
  int32_t head0;  // Query heads the source is read by; others need no packing.
  int32_t heads;
  int32_t valid0;  // -1: no holes. Else its bitmap's first word in Plan::valid: slot j is bit
                   // j % 64 of word valid0 + j / 64, 0 = a hole. Not for paged sources.
};

// Partial states of one query row and head, merged in ascending order into the output.
struct Merge {
  int32_t row;  // Output row.
  int32_t head;
  int32_t part0;  // First partial-state slot; the pieces lie `stride` apart.
  int32_t stride;
  int32_t parts;
};

// Lifetime: built once, immutable while any executor reads it. Thread-compatible.
struct Plan {
  std::vector<Tile> tiles;
  std::vector<Span> spans;
  std::vector<Interval> intervals;
  std::vector<Bias> biases;
  std::vector<Item> items;       // Cache order, large work first; taken from a counter.
  std::vector<SlotMap> sources;  // One per Call::sources, same order.
  std::vector<SlotRun> runs;
  std::vector<uint64_t> valid;
  std::vector<Merge> merges;
  int32_t partial_slots = 0;

  int64_t useful = 0;    // Query-key-head triples the pattern asks for.
  int64_t executed = 0;  // Triples computed: whole blocks times tile rows.
};

}  // namespace longview::kernels
