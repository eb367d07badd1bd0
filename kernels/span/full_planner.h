// Full attention: every row of a sequence sees all its keys. Longformer's global rows (split),
// Luna's pack (split) and unpack, LED cross attention (split), Linformer, spatial reduction,
// slices over slices, the class row of Transformer-LS over its own key and the first call's
// outputs.
//
// The last source is the keys, rows as in their tensor. With `own_keys` source 0 is a second
// tensor whose keys come first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct FullSequence {
  int32_t query_row0 = 0;
  int32_t queries = 0;
  int32_t key_row0 = 0;
  int32_t keys = 0;
  std::span<const uint8_t> visible;  // Per key, 0 = a hole; empty: all visible.
  int32_t own_row0 = 0;              // Keys of source 0, with FullPattern::own_keys.
  int32_t own = 0;
};

struct FullPattern {
  int32_t heads = 1;
  // Cut the keys at multiples of kSplitSlots into pieces that run in parallel. A property of
  // the call, never of its size.
  bool split = false;
  // Query i sees keys j <= i + (keys - queries) + causal_lead. A lead of -1 is the strict
  // form: the first row sees nothing.
  bool causal = false;
  int32_t causal_lead = 0;
  bool own_keys = false;
  int32_t tile_rows = 48;  // TileRows(isa).
};

// Sequences without queries add nothing; without keys, their rows get zeros.
Plan PlanFull(const FullPattern& pattern, std::span<const FullSequence> batch);

}  // namespace longview::kernels
