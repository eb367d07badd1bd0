// Long-short attention over text (Transformer-LS, Zhu et al. 2021): every token sees the
// projected keys of its document and the window of its group of w tokens. Bidirectional:
//
//   group G = t / window:  positions G*window - extension .. G*window + window - 1 + extension
//
// Sources: 0 the projected keys (with CLS, its row is simply the first of them), 1 the tokens.
// The class row is a second call: PlanFull with own_keys over the first call's outputs.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct SegmentPattern {
  int32_t heads = 1;
  int32_t window = 0;     // w; 0: projected keys only.
  int32_t extension = 0;  // max(w / 2, 1) in the published models.
  int32_t tile_rows = 48;
};

struct SegmentSequence {
  int32_t row0 = 0;  // First row of its tokens in q, k, v.
  int32_t tokens = 0;
  int32_t projected_row0 = 0;
  int32_t projected = 0;
  std::span<const uint8_t> visible;  // Per token, 0: no key, and zeros as its own output.
};

Plan PlanSegments(const SegmentPattern& pattern, std::span<const SegmentSequence> batch);

}  // namespace longview::kernels
