// Sliding-window attention with global tokens: the local rows of Longformer and the LED
// encoder (Beltagy et al. 2020, section 3; HuggingFace LongformerSelfAttention).
//
// Every local token sees window_left keys before it, itself and window_right keys after it,
// `dilation` apart, then every global token once, whatever the distance. Masked and global
// tokens are holes of the window. Masked rows get zeros. Rows of global tokens get values
// without meaning, or are left unwritten: the call over PlanFull overwrites them.
//
// All sources of the plan read the same k and v, the local projections, rows as in the
// batch: give the call plan.sources.size() equal sources. Source 0 is the gathered globals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"

namespace longview::kernels {

enum TokenRole : uint8_t { kMaskedToken = 0, kLocalToken = 1, kGlobalToken = 2 };

struct BandSequence {
  int32_t row0 = 0;  // First row of its keys and values in the batch tensor.
  int32_t tokens = 0;
  std::span<const uint8_t> roles;  // TokenRole per token; empty: all local.
  // Positions whose outputs are wanted, ascending. Null: all, and q and out have the same
  // rows as k. Else q and out hold the wanted rows only, from row query_row0 on.
  const std::vector<int32_t>* wanted = nullptr;
  int32_t query_row0 = 0;
  // Positions of all global tokens, counted from the part's first, where the tokens are a part of a
  // longer sequence (from a multiple of kBlockSlots on, so that no bit changes). Null: the tokens
  // that `roles` marks as global.
  const std::vector<int32_t>* globals = nullptr;
};

struct BandPattern {
  int32_t heads = 1;
  int32_t window_left = 0;        // One-sided: attention_window / 2 in HuggingFace terms.
  int32_t window_right = 0;       // 0 with window_left > 0: causal.
  std::vector<int32_t> dilation;  // One per head, at least 1; empty: all 1.
  // Local rows see only the globals at or before them (the Long Range Arena's causal rule).
  bool causal_globals = false;
  int32_t tile_rows = 48;  // TileRows(isa).
};

// REQUIRES: tokens >= 1, windows >= 0, roles empty or one per token.
Plan PlanBand(const BandPattern& pattern, std::span<const BandSequence> batch);

// Positions of the global tokens of a sequence, ascending.
std::vector<int32_t> GlobalPositions(const BandSequence& sequence);

}  // namespace longview::kernels
