// Transformer-LS language model (Zhu et al. 2021) over cached state: which projected segments and
// which positions the tokens of a step see, in either schedule, on the CPU and on a device.
//
// The paper's: every finished segment, averaged after projection, and the window; PlanPaged.
// `blocks`, the released code's: the text goes by in blocks of B tokens with M tokens of memory.
// Token t with C = t / l, S = B * (t / B), c0 = (S - M) / l sees
//
//   constant segments  c0 <= c < 0           with zero memory: r keys each, all alike
//   early segments     max(c0, 0) <= c < S/l
//   late segments      S/l <= c < C
//   window             t - w + 1 .. t; with zero memory places before the text are keys, all alike
//
// Key order of a tile, both schedules: segments ascending, then the window ascending. Slots are
// absolute: the position for the window, c * r + k for segments; sources other than the chunk's own
// rows are Layout::kPaged, and look their blocks up by these. Slot 0 of constant segments is the
// first key of c = -M / l, that of constant window places is position 1 - w.
//
// Pure: thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/span/plan.h"

namespace longview::kernels {

// Sources of a call, in the order of the plan; those a schedule does not have are left out.
enum class ScheduleSource {
  kConstantSegments,  // Zero memory: segments before the text.
  kEarly,             // Finished blocks, averaged before projection.
  kLate,              // Averaged after projection.
  kConstantWindow,    // Zero memory: positions before the text.
  kCached,            // Window rows read in earlier steps, or in this one where nothing is fresh.
  kFresh,             // The chunk's own rows.
};

// At most one of each, in their order. A value: made in every layer.
class ScheduleSources {
 public:
  void Add(ScheduleSource source) { sources_[size_++] = source; }

  const ScheduleSource* begin() const { return sources_.data(); }
  const ScheduleSource* end() const { return sources_.data() + size_; }
  size_t size() const { return size_; }

 private:
  std::array<ScheduleSource, 6> sources_ = {};
  size_t size_ = 0;
};

// Is it read with the window's table, its q_add and dot_add?
inline bool OfWindow(ScheduleSource source) { return source >= ScheduleSource::kConstantWindow; }

// Tables of a call (Dotted; Added once scores were made of them).
inline constexpr int kWindowTable = 0;   // Entry t - p.
inline constexpr int kSegmentTable = 1;  // Entry r * (C - c) - 1 - k.

struct SchedulePattern {
  int32_t heads = 1;
  int32_t window = 1;   // w, the token itself included.
  int32_t segment = 1;  // l.
  int32_t rank = 1;     // r.
  int32_t block = 0;    // B, a multiple of l; 0: the paper's schedule.
  int32_t memory = 0;   // M, a multiple of l, at least w; `blocks` only.
  bool zero_memory = false;

  bool paper() const { return block == 0; }
  ScheduleSources Sources(bool fresh) const;
  // Entries of the segment table that a token at position t reads: [0, SegmentIds).
  int64_t SegmentIds(int64_t t) const;
  // Entries that any position below `tokens` reads.
  int64_t MostSegmentIds(int64_t tokens) const;
  // Keys that a token at position t sees.
  int64_t VisibleKeys(int64_t t) const;
};

// One sequence's rows: tokens at positions start, start + 1, ...
struct ScheduleRun {
  int32_t row0 = 0;
  int32_t tokens = 0;
  int32_t start = 0;
};

// `fresh`: the runs' own keys are rows of the call, and every start is a multiple of kBlockSlots;
// else they are in the cache already.
Plan PlanSchedule(const SchedulePattern& pattern, bool fresh, std::span<const ScheduleRun> runs,
                  int tile_rows);

// Turns the Dotted biases of a plan of single rows into Added ones, of scores that were made
// before: run i reads entries i * window and i * segments on. REQUIRES: every run has one token,
// run i at row row0 + i.
void ReadScores(int32_t row0, int64_t window, int64_t segments, Plan& plan);

}  // namespace longview::kernels
