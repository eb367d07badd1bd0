// Cross attention of generating sequences (LED's decoder): every query sees all keys of a document
// that was encoded before and lies in cached blocks. Queries of several sequences over one document
// (beams, samples) share tiles, so that its blocks are read once for all of them.
//
// One source, Layout::kPaged, looked up by the document's place in `batch`. Keys are split at
// kSplitSlots.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct CrossDocument {
  int32_t query_row0 = 0;
  int32_t queries = 0;  // Rows of q and out, side by side.
  int32_t keys = 0;     // Slots 0 .. keys - 1.
};

// `tile_rows`: TileRows(isa).
Plan PlanCross(int32_t heads, int32_t tile_rows, std::span<const CrossDocument> batch);

}  // namespace longview::kernels
