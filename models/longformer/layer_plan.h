// Rows that a layer reads and writes, and the plans of attention over them: the host side of a
// layer, built once per batch and attention pattern.
//
// All layers but the last take every row to every row, piece by piece: what a layer needs beside
// the residual stream is as large as a piece, not as the batch. A document longer than a piece is
// cut; the window's projections at a cut are carried on, as the rows they came from are gone. The
// last layer computes only the rows that heads read: their neighbourhood gives keys and values,
// everything else is left out. All of it is exact: a row's bits depend neither on the cuts nor on
// which others are wanted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"
#include "models/encoder/sequence.h"
#include "models/longformer/config.h"

namespace longview::models {

// A global token whose output the layer needs.
struct GlobalRow {
  int32_t sequence;
  int32_t row;  // Row of x, the ragged batch.
  int32_t out;  // Row of the attention of all rows of its kind.
};

// Range of a sequence's global rows in one of the lists below.
struct GlobalGroup {
  int32_t sequence;
  int32_t first;  // Index into folded or unfolded.
  int32_t count;
  int32_t row0;  // First row of the sequence in x.
  int32_t tokens;
  int32_t key_row0;  // Unfolded: first row of its global keys and values.
};

// Attention of a run of rows, by projections in a buffer: first those of the global tokens of the
// document that it is cut out of, if it is, then those of its rows and of the window around them in
// the order of x.
struct LayerPiece {
  kernels::Plan band;                // Local rows.
  int64_t first = 0;                 // Row of x of its first output.
  int64_t count = 0;                 // Outputs, which are neighbours.
  int64_t query = 0;                 // Row of the buffer of its first output.
  std::vector<int32_t> cut_globals;  // Rows of x, with the document's first piece alone.
  int64_t base = 0;                  // Row of the buffer behind the global tokens.
  // Rows of the buffer that move to its row `base`: the last ones of the piece before.
  std::vector<int32_t> carried;
  // Behind them, projected anew: so many rows of x from `fresh` on.
  int64_t fresh = 0, projected = 0;
  // Places in the piece of global rows, which are neighbours in the plan's lists.
  struct Globals {
    int64_t first = 0;
    std::vector<int32_t> places;
  };
  Globals folded, unfolded;
};

struct LayerPlan {
  std::vector<LayerPiece> pieces;
  bool whole = true;  // Every row in, every row out. Else there is one piece.
  // Only if not whole:
  std::vector<int32_t> local_rows;  // Rows of x that need local q, k, v; ascending.
  std::vector<int32_t> query_rows;  // Per output row: index into local_rows, or -1.
  std::vector<int32_t> out_rows;    // Row of x per output row; ascending.

  // Global rows by how they are computed. Few global tokens: the key and value projections are
  // folded into one vector per head and global token (no n x H products); many: projected
  // keys and values and the full-attention plan.
  std::vector<GlobalRow> folded, unfolded;
  std::vector<GlobalGroup> folded_groups, unfolded_groups;
  kernels::Plan full;
  int64_t global_key_rows = 0;  // Sum of tokens of the unfolded groups.

  int64_t inputs = 0;   // Rows of x.
  int64_t outputs = 0;  // Rows of the output.
};

// Rows of a layer's buffers, for these sequences and for any of them.
struct LayerRows {
  int64_t projections = 0;
  int64_t outputs = 0;  // A piece has at most so many.
  int64_t globals = 0;  // A document that is cut has at most so many.

  void Include(const LayerRows& other);
};

// Cuts a layer of a batch. Documents of up to PieceRows are not cut, nor any where heads skip
// tokens: classes of rows lie apart there.
class LayerPlanner {
 public:
  // Outputs of a piece at most, a multiple of kBlockSlots, unless windows are wide: a window's rows
  // are carried from piece to piece.
  static constexpr int64_t kPieceRows = 4096;

  // Borrows all. `offsets` has one entry more than `sequences`: the ragged rows.
  LayerPlanner(const LongformerConfig& config, std::span<const EncoderSequence* const> sequences,
               std::span<const int32_t> offsets, int tile_rows, int64_t piece_rows = kPieceRows)
      : config_(config),
        sequences_(sequences),
        offsets_(offsets),
        tile_rows_(tile_rows),
        piece_rows_(piece_rows) {}

  // REQUIRES: layer < config.layers. `subset`: outputs are the wanted rows only.
  LayerPlan Plan(int layer, bool subset) const;
  // The buffers of a layer that is not a subset.
  LayerRows Rows(int layer) const;

 private:
  int64_t PieceRows(int layer) const;

  const LongformerConfig& config_;
  const std::span<const EncoderSequence* const> sequences_;
  const std::span<const int32_t> offsets_;
  const int tile_rows_;
  const int64_t piece_rows_;
};

// Positions of a sequence's global tokens, ascending.
std::vector<int32_t> GlobalsOf(const EncoderSequence& sequence);

// Whether a sequence with `globals` global tokens folds their projections: its own count against
// the width decides, never the batch.
bool FoldsGlobals(const LongformerConfig& config, int globals);

}  // namespace longview::models
