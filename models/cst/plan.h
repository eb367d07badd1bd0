// How a layer runs over a batch: the host side, built once per batch, the same for all layers.
//
// Every document has its own grid of ceil(N / L) slices from its first token on. Padding behind a
// document is on no grid: its rows see nothing and are seen by nobody.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/pool/slice_rows.h"
#include "kernels/span/plan.h"
#include "models/cst/config.h"
#include "models/encoder/ragged_batch.h"

namespace longview::models {

struct CstPlan {
  // Every token over its slice, extended. Sources: 0 tokens; 1 zero tokens, with a zero boundary.
  // No items with the `mlp` mixer.
  kernels::Plan tokens;
  // Every slice over the slices of its document. Source 0: slice rows.
  kernels::Plan slices;

  // One row each, documents one after the other; the last slice of one may be shorter than L.
  std::vector<kernels::SliceRows> slice_list;
  std::vector<int32_t> slice_numbers;  // In their documents.
  std::vector<int32_t> slice_of_row;   // -1: padding.

  int64_t rows() const { return static_cast<int64_t>(slice_of_row.size()); }
  int64_t slice_rows() const { return static_cast<int64_t>(slice_list.size()); }
  // Place of a row in its slice; any for padding.
  int64_t PlaceOf(int64_t row) const {
    const int32_t slice = slice_of_row[static_cast<size_t>(row)];
    return slice < 0 ? 0 : row - slice_list[static_cast<size_t>(slice)].row0;
  }
};

CstPlan PlanCst(const CstConfig& config, const RaggedBatch& batch, int tile_rows);

}  // namespace longview::models
