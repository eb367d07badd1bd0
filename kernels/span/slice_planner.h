// Local attention of the Composite Slice Transformer (Lee et al. 2023): every token sees its
// slice of L tokens and `extension` more on either side (autoregressive: on the left side, and
// itself and earlier tokens of its slice). The slice-over-slice call is PlanFull.
//
// Keys are stored without positions; table 0 of the call, Dotted, holds the projected position
// rows T_k [H, L + 2 * extension (autoregressive: L + extension), Dk].
//
// Sources: 0 the tokens. With `zero_boundary` source 1 holds keys and values of zero tokens at the
// e places left of the first slice, then at the e places right of the last: 2 e rows, or one row
// with row strides of 0 where all are alike.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct SlicePattern {
  int32_t heads = 1;
  int32_t slice = 1;      // L.
  int32_t extension = 0;  // e, at most L.
  bool autoregressive = false;
  bool positions = true;  // Use table 0.
  bool zero_boundary = false;
  int32_t tile_rows = 48;
};

struct SliceSequence {
  int32_t row0 = 0;
  int32_t tokens = 0;
  std::span<const uint8_t> visible;  // Per token, 0: a hole. Empty: all visible.
};

Plan PlanSlices(const SlicePattern& pattern, std::span<const SliceSequence> batch);

}  // namespace longview::kernels
