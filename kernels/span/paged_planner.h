// Causal attention of running generations: decode steps and chunks of prefill. Each query sees
// projected pages of finished segments (Transformer-LS language model), a window of cached
// blocks, and the chunk's own fresh tokens up to itself. LED's decoder is the case without
// pages and without a window limit.
//
//   pages:  keys j < rank * (t / segment), whole document, split at kSplitSlots
//   window: positions t - window + 1 .. t; below `start` from cached blocks, then fresh rows
//
// A decode step commits its keys first and has no fresh rows: fresh = false, start = t, and
// the window reads the block that holds t. A chunk of prefill attends before it commits, with
// start a multiple of kBlockSlots; its finished segments' pages are appended before the call.
//
// Sources: pages (if rank > 0), cached blocks, fresh rows (if fresh). Pages and cached blocks
// are Layout::kPaged, looked up by the sequence's place in `batch`.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct PagedPattern {
  int32_t heads = 1;
  int32_t window = 0;   // Keys of a query, itself included; 0: every earlier position.
  int32_t segment = 1;  // l.
  int32_t rank = 0;     // r: projected keys per finished segment; 0: no pages.
  bool fresh = false;
  // Indices of Dotted tables, -1: none. Window: entry = distance t - p. Pages: entry =
  // rank * (t / segment) - 1 - j, the rank-wise distance in segments.
  int32_t window_table = -1;
  int32_t page_table = -1;
  int32_t tile_rows = 48;
};

struct PagedSequence {
  int32_t query_row0 = 0;
  int32_t tokens = 0;  // Queries, at positions start, start + 1, ...
  int32_t start = 0;
  int32_t first_block = 0;  // Position / 64 of the first block in its cached block list.
  int32_t fresh_row0 = 0;
};

Plan PlanPaged(const PagedPattern& pattern, std::span<const PagedSequence> batch);

}  // namespace longview::kernels
