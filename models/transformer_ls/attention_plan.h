// Which cached and fresh keys the tokens of a step see, as plans for the span executor.
//
// Key order of a tile, both schedules: projected segments ascending, then the window ascending.
// Slots are absolute: position for the window, segment * r + k for projected keys; cached
// sources look blocks up by them (paged_view.h).
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"
#include "models/transformer_ls/config.h"

namespace longview::models {

// Sources of a call, in the order of the plan; those a schedule does not have are left out.
enum class LsSource {
  kConstantSegments,  // Zero memory: segments before the text.
  kEarly,             // kBlocks: finished blocks, averaged before projection.
  kLate,              // Averaged after projection.
  kConstantWindow,    // Zero memory: positions before the text.
  kCached,            // Window rows read in earlier steps, or in this one where nothing is fresh.
  kFresh,             // The chunk's own rows.
};
std::vector<LsSource> LsSources(const LsLmConfig& config, bool fresh);

// Tables of a call (Dotted; Added once scores were made of them).
inline constexpr int kWindowTable = 0;   // Entry t - p.
inline constexpr int kSegmentTable = 1;  // Entry r * (C - c) - 1 - k, C = t / l.

// One sequence's rows: tokens at positions start, start + 1, ...
struct LsQueryRun {
  int32_t row0 = 0;
  int32_t tokens = 0;
  int32_t start = 0;
};

// `fresh`: the runs' own keys are rows of the call, and every start is a multiple of kBlockSlots;
// else they are in the cache already.
kernels::Plan PlanLsAttention(const LsLmConfig& config, bool fresh,
                              std::span<const LsQueryRun> runs, int tile_rows);

// Entries of the segment table that a token at position t reads: [0, SegmentIds).
int64_t SegmentIds(const LsLmConfig& config, int64_t t);
// Entries that any position below `tokens` reads.
int64_t MostSegmentIds(const LsLmConfig& config, int64_t tokens);
// Keys a token at position t sees.
int64_t VisibleKeys(const LsLmConfig& config, int64_t t);

// Turns the Dotted biases of a plan of single rows into Added ones: run i reads the window table
// from window_entry[i] on, the segment table from segment_entry[i] on. REQUIRES: every run has one
// token, run i at row row0 + i.
void ReadScores(std::span<const int64_t> window_entry, std::span<const int64_t> segment_entry,
                int32_t row0, kernels::Plan& plan);

}  // namespace longview::models
