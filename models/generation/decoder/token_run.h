// Tokens that sequences over kernels/cache read in one pass, and how their rows lie.
// Plain values and functions of them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "models/generation/decoder/cached_sequence.h"
#include "models/generation/sampling/token_choice.h"

namespace longview::models {

// Tokens of one sequence in a step.
struct TokenRun {
  kernels::CacheStep::Group group = kernels::CacheStep::kPrefill;
  CachedSequence* sequence = nullptr;
  std::span<const int32_t> ids;
  int64_t start = 0;                    // Position of the first.
  int64_t wanted = 0;                   // Number of last rows whose logits are wanted.
  float* logits = nullptr;              // [wanted, V], written by the pass.
  const TokenChoice* choice = nullptr;  // Choice of the next token by the pass; null: logits.
  std::optional<ChosenToken>* chosen = nullptr;  // Destination of the chosen token.
  int64_t row0 = 0;                              // Set by SortRuns.

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  int64_t end() const { return row0 + rows(); }
};

// Runs of a group lie side by side.
struct RunGroup {
  kernels::CacheStep::Group group = kernels::CacheStep::kPrefill;
  int run0 = 0, runs = 0;
  int64_t row0 = 0, rows = 0;
};

// Groups in the order of rows: chunks of prefill that begin at a block of the cache (their keys are
// read from the pass's own rows), pieces of prefill that begin inside one (their keys are written
// to the cache first), single tokens of decoding (likewise). The first two agree in bits.
std::array<RunGroup, 3> SortRuns(std::vector<TokenRun>& runs);

// Rows of logits of all runs.
int64_t WantedRows(std::span<const TokenRun> runs);

// Lists of blocks of rows that decode have room for a few more, so that steps of like sizes may be
// one recording (device_token_pass.h).
inline void RoundUpBlocks(const RunGroup& group, std::vector<int32_t>& blocks) {
  if (group.group == kernels::CacheStep::kDecode) blocks.resize(std::bit_ceil(blocks.size()));
}

// Gives sequences the memory for their tokens. RESOURCE_EXHAUSTED where it was not reserved.
absl::Status AppendRuns(std::span<const TokenRun> runs, kernels::CacheStep& step);

// The step that prices scratch: `prefill` tokens at the end of the longest text, and
// `decoding` sequences at position `last`; the last token's logits of each.
struct LongestRuns {
  LongestRuns(int64_t max_tokens, int64_t prefill, int decoding, int64_t last);

  std::vector<int32_t> ids;
  std::vector<TokenRun> runs;
};

// Tokens of one sequence in one pass over the layers, at most: a step that was granted more reads
// them in several passes, so that no pass needs more scratch than its requests were priced with.
// A multiple of kernels::kBlockSlots, so that the pieces begin at blocks of the cache.
inline constexpr int kPrefillPart = 2048;

// Tokens that the next pass reads, of `left` from position `start` on. Cuts lie at absolute
// positions, so that they are the same however a text is fed.
inline int64_t PrefillPart(int64_t start, int64_t left) {
  return std::min(left, kPrefillPart - start % kPrefillPart);
}

}  // namespace longview::models
