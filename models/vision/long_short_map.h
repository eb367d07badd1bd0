// Long-short attention of a stage's maps as calls of operations, from projected rows to outputs:
// what ViL-LS and CvT-LS share. See long_short/map_plan.h.
#pragma once

#include <cstdint>
#include <span>

#include "models/feature_maps/attend_large_map.h"
#include "models/ops/long_short.h"

namespace longview::models {

// Plans and lists of a band that goes through a block as a whole.
struct LongShortLists {
  PlanRef tokens, class_rows;
  Segments segments;  // The images' tokens, for landmarks.
};
// `tokens`: plan.tokens, or another form of it. Borrows both.
LongShortLists StageLongShort(Backend& backend, const LongShortPlan& plan,
                              const kernels::Plan& tokens);

// The memory of a stage's blocks, for the largest of its bands. "T" is an element of the compute
// type.
struct LongShortMemory {
  Rows normed;                  // T [band, d] LN(x); then a whole band's output.
  LongShortRows rows;           // [band, ..]
  Rows value_scores;            // Scores of values that have weights of their own; else none.
  Rows landmarks;               // T [images r, 2d]
  Rows outputs;                 // T [rows, d] of a band in slices.
  Rows scores;                  // Scores of all tokens of that band.
  Rows sliced_values;           // The values' own scores of that band.
  std::byte* sliced = nullptr;  // Memory by CarveLargeMap; null with in_scratch.
  bool in_scratch = false;      // Large maps use scratch instead of `sliced`.
};
struct LongShortNeeds {
  const LongShortPattern& pattern;
  std::span<const LongShortBand> bands;
  bool one_product = true;    // Whether one makes queries, keys, values and scores.
  bool value_scores = false;  // Whether values have weights of their own.
  int beside = 0;             // Rows of a map above and below a slice that are read with it.
};
LongShortMemory CarveLongShort(const Backend& backend, const ComputeContext& context,
                               const LongShortNeeds& needs, Carver& carver);

// The band's outputs into `memory.normed`, of its projected rows and their scores.
// `landmark_norm` null: landmarks as they are. `tables` are those of the tokens' plan.
void AttendLongShort(Backend& backend, const LongShortPattern& pattern, const LongShortLists& lists,
                     int64_t band_rows, const LongShortMemory& memory,
                     const NormWeight* landmark_norm, std::span<const kernels::Table> tables);

// T [count, 3d] rows of host memory as queries, keys and values side by side; `normed` has d.
LongShortRows SideBySide(const Rows& normed, int64_t count, std::byte* to);

// The attention of a band in slices.
ops::AttendLargeMap LargeMapOf(const LongShortPattern& pattern, const LongShortBand& band,
                               const LongShortMemory& memory, const NormWeight* landmark_norm,
                               const LargeMapRows& rows);

}  // namespace longview::models
