// The KV cache of one sequence of a model, and its bytes: a closed form in whole blocks,
// so that memory can be reserved before a request runs and is never asked for later.
//
// A sequence keeps *strips*. A strip is a list of 64-slot blocks over one absolute grid of slots:
// the window of raw keys (slot = position) and projected pages (slot = segment * rank + k, Zhu
// et al. 2021, section 3.2). Blocks that slid out of a strip's reach are given back. Beside the
// strips a sequence has the running sums of its open segment, one PoolState per layer.
//
// Plain values: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/span/kv_layout.h"

namespace longview::kernels {

// Slots after n tokens: n / segment * rank.
struct StripShape {
  int32_t segment = 1;  // l: tokens of a segment; 1 for a window.
  int32_t rank = 1;     // r: slots per finished segment.
  int32_t keep = 0;     // Once a token is appended, the last `keep` slots can be read; 0: all.
};

// Raw keys of the last `window` positions; 0: of every position (LED's decoder, a full cache).
inline StripShape WindowStrip(int32_t window) { return {1, 1, window}; }

// Projected keys of the last `segments` finished segments; 0: of all.
inline StripShape PageStrip(int32_t segment, int32_t rank, int32_t segments = 0) {
  return {segment, rank, segments * rank};
}

// How a head's 64 rows lie in a block.
enum class BlockForm {
  kPanels,  // KvLayout: what this machine's executor reads.
  kRows,    // One behind the other, [64][D up to 8]: what a device reads (cuda/span/span_call.h).
};

struct CacheShape {
  int layers = 1;
  int kv_heads = 1;
  int Dk = 1, Dv = 1;             // Per head, 1 .. kMaxHeadDim.
  DType dtype = DType::kFloat32;  // Type of the blocks: PanelDType of the process.
  BlockForm form = BlockForm::kPanels;
  std::vector<StripShape> strips;  // At least one; strips[0] has segment = rank = 1.
  int pool_columns = 0;            // Open segment's PoolState; 0: none.
  std::vector<int> pool_widths;    // One or two value tensors.

  KvLayout layout() const { return KvLayout(dtype, Dk, Dv, kv_heads); }

  // In tokens, lcm(64, segments of all strips): at its multiples the state of an unfinished segment
  // is empty, and every block before it full. Chunks of prefill end there.
  int32_t prefill_alignment() const;

  // Slots of a strip after `tokens` tokens.
  int64_t Slots(int strip, int64_t tokens) const;

  // Blocks a strip's list holds at most: ceil((keep + 63) / 64) for the reach of a query wherever
  // it begins inside a block, and one more, so that the blocks before the last multiple of
  // prefill_alignment() are still there when that prefix is cached (above 128 tokens: as many as
  // that takes). INT64_MAX if keep is 0.
  int64_t MaxBlocks(int strip) const;

  // Blocks of a strip that one sequence of `tokens` tokens holds, exactly.
  int64_t Blocks(int strip, int64_t tokens) const;

  // Memory of one head's keys, and values, in a block.
  size_t KeyBytes() const;
  size_t ValueBytes() const;
  // Memory of one block of a strip, all layers, keys and values.
  int64_t BlockBytes() const;
  // Memory of one sequence's open segments, all layers; 0 if there is none.
  int64_t StateBytes() const;

  // Memory of `sequences` forks, all of which have read the same first `shared` tokens, when each
  // has read `longest` tokens; also the most they hold on the way there. Exact for sequences
  // of more than `shared` tokens. REQUIRES: 0 <= shared <= longest, sequences >= 1.
  int64_t SequenceBytes(int64_t shared, int64_t longest, int sequences) const;

  // The most that one step holds beyond what its sequences reserved: old blocks of windows that
  // only the prefix index shares and this step still reads, and a copy being made.
  int64_t StepBytes(int64_t prefill_tokens, int sequences) const;

  // First slot that the next query after `tokens` tokens can read.
  int64_t FirstSlotAt(int strip, int64_t tokens) const;
};

}  // namespace longview::kernels
