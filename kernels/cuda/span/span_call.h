// One attention over one uploaded plan: executor.h's Call with pointers into device memory. Plain
// data, handed to kernels by value.
//
//   score = scale * ((q + q_add) . k) + Added + scale * ((q + dot_add) . R[entry])
//
// Thread-compatible: a value.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/element.h"
#include "kernels/span/executor.h"

namespace longview::kernels::cuda {

// Limit of one call: it travels as a kernel's parameter, which is best below 4 KiB. Plans with more
// sources than this (many dilations in one call) run on the CPU.
inline constexpr int kMaxDeviceSources = 16;
inline constexpr int kMaxTables = 8;

// Columns of a row in device blocks: D up to whole 16-byte pieces of 16-bit elements. (A function
// of D alone, so that the same block numbers serve every kernel.)
LONGVIEW_HD inline int BlockPitch(int D) { return (D + 7) / 8 * 8; }

// Keys and values of one origin. kPanels and kPaged are device blocks: [block][key head][64][pitch]
// row by row, pitch = BlockPitch(D), not the CPU's panels.
struct SpanSource {
  const void* k;
  const void* v;
  int64_t k_row_stride, k_head_stride;  // kRows: elements. A row stride of 0 is one constant row.
  int64_t v_row_stride, v_head_stride;
  const int32_t* block_table;  // kPaged: as in kernels::Source.
  const int32_t* seq_offset;
  const float* q_add;  // [H, Dk] or null.
  Layout layout;
  int32_t kv_heads;  // Key-value heads in a device block.
  int32_t pieces;    // 1: every row of k and v starts at a multiple of 16 bytes; PrepareCall.
  int32_t unused;
};

// Added: fp32 [H, entries]. Dotted: rows of `element` [H, entries, Dk] with strides.
struct SpanTable {
  const void* data;
  const float* dot_add;  // [H, Dk] or null.
  int64_t head_stride;
  int64_t entry_stride;
  Element element;
  int32_t entries;
};

struct SpanCall {
  const void* q;  // [rows, H, Dk] of `element`, strides in elements.
  void* out;      // [rows, H, Dv]
  int64_t q_row_stride, q_head_stride;
  int64_t out_row_stride, out_head_stride;
  Element element;  // Type of q, out and every source.
  int32_t Dk, Dv;   // 1 .. kMaxHeadDim
  int32_t H;
  int32_t kv_group;
  float scale;
  int32_t q_pairs;    // 1: neighbouring elements of q at even columns lie in one word; PrepareCall.
  int32_t out_pairs;  // 1: so do those of out.
  float* part_m;      // Partial states, for tiles with part >= 0: largest scores (softmax_state.h).
  float* part_l;      // Sums of weights.
  float* part_o;      // Weighted sums of values.
  int32_t part_stride;
  int32_t sources_used;
  SpanSource sources[kMaxDeviceSources];
  SpanTable tables[kMaxTables];
};

// Fills what follows from the rest: how q, out and sources may be read, and the partial states in
// `partials`, device memory of PartialBytes(slots, Dv), 64-byte aligned.
void PrepareCall(SpanCall* call, void* partials, int64_t partial_slots);

}  // namespace longview::kernels::cuda
