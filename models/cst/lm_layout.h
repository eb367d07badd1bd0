// Which rows one pass of the language model computes and which slices they finish: the host side
// of a pass, built once for all layers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/span/plan.h"
#include "models/cst/config.h"
#include "models/generation/token_run.h"

namespace longview::models {

// The rows of one slice in one run. Pieces cover all rows, in order.
struct CstPiece {
  int run = 0;
  int32_t row0 = 0;
  int32_t rows = 0;
  int32_t number = 0;    // Of the slice.
  int32_t place = 0;     // Of the first row in it; above 0 the slice was begun in an earlier pass.
  int32_t closing = -1;  // Which finished slice of the pass it ends; -1: the slice stays open.
  bool last = false;     // Of its run.
};

struct CstGroup : RunGroup {
  int32_t closing0 = 0, closings = 0;
  // Tokens over their slices. Sources: zero tokens (zero boundary), cached blocks, fresh rows.
  kernels::Plan tokens;
  // Slices that end in the group, over their own and all earlier ones. Source: cached blocks.
  kernels::Plan slices;
  std::vector<int32_t> snapshots;  // Closings whose Y_g goes into strip 2.
};

struct CstPassLayout {
  std::vector<TokenRun> runs;  // Sorted by group.
  std::array<CstGroup, 3> groups;
  int32_t rows = 0;
  int64_t wanted = 0;  // Rows of logits.
  std::vector<CstPiece> pieces;
  std::vector<int32_t> piece_of_row;
  std::vector<int32_t> closing_pieces;  // Of each finished slice.

  int32_t closings() const { return static_cast<int32_t>(closing_pieces.size()); }
  int32_t PlaceOf(int32_t row) const {
    const CstPiece& piece = pieces[static_cast<size_t>(piece_of_row[static_cast<size_t>(row)])];
    return piece.place + row - piece.row0;
  }
};

// `runs` in any order; a sequence occurs once.
CstPassLayout LayOutCstPass(const CstConfig& config, std::vector<TokenRun> runs, int tile_rows);

}  // namespace longview::models
