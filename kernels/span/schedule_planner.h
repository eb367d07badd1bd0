// Transformer-LS language model under the reference's `blocks` schedule (Zhu et al. 2021 as
// released): the text is processed in blocks of B tokens with M tokens of memory. Token t with
// C = t / l, S = B * (t / B), c0 = (S - M) / l sees
//
//   constant segments  c0 <= c < 0           r keys each, one row for all
//   early segments     max(c0, 0) <= c < S/l
//   late segments      S/l <= c < C
//   window             t - w + 1 .. t; places before the text are one constant row
//
// The schedule without memory, the server's default, is PlanPaged.
//
// Sources: 0 constant segment row, 1 early, 2 late ([segment * r + k] rows per sequence),
// 3 constant window row, 4 tokens. The rows of 0 and 3 are row 0 of their tensors.
// Tables (Dotted): 0 window, entry t - p; 1 segments, entry r * (C - c) - 1 - k.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct SchedulePattern {
  int32_t heads = 1;
  int32_t window = 1;   // w.
  int32_t segment = 1;  // l.
  int32_t rank = 1;     // r.
  int32_t block = 1;    // B, a multiple of l.
  int32_t memory = 0;   // M, a multiple of l, at least w.
  int32_t tile_rows = 48;
};

struct ScheduleSequence {
  int32_t row0 = 0;
  int32_t tokens = 0;
  int32_t early_row0 = 0;
  int32_t late_row0 = 0;
};

Plan PlanSchedule(const SchedulePattern& pattern, std::span<const ScheduleSequence> batch);

}  // namespace longview::kernels
