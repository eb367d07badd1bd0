// The strips of a Transformer-LS sequence (kernels/span/schedule_planner.h):
//
//   strip 0   window: key and value per position, normed
//   strip 1   late form of finished segments; `blocks` schedule: of the current block
//   strip 2   `blocks` schedule: early form of finished segments, visible once their block is over
//
// Functions of plain values.
#pragma once

#include <vector>

#include "kernels/cache/cache_shape.h"
#include "kernels/span/schedule_planner.h"

namespace longview::kernels {

inline constexpr int kWindowStrip = 0, kLateStrip = 1, kEarlyStrip = 2;

// The strip of a source that is cached.
inline int StripOf(ScheduleSource source) {
  if (source == ScheduleSource::kEarly) return kEarlyStrip;
  return source == ScheduleSource::kLate ? kLateStrip : kWindowStrip;
}

inline std::vector<StripShape> StripsOf(const SchedulePattern& pattern) {
  const int32_t segment = pattern.segment, rank = pattern.rank;
  const StripShape window = WindowStrip(pattern.window);
  if (pattern.paper()) return {window, PageStrip(segment, rank)};
  const int32_t block = pattern.block / segment, memory = pattern.memory / segment;
  return {window, PageStrip(segment, rank, block), PageStrip(segment, rank, memory + block)};
}

}  // namespace longview::kernels
