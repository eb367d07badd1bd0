// The attention executor: gathers runs of keys, scores, adds bias, masks by intervals,
// takes an online softmax over the union of a tile's spans, sums values.
//
//   score = scale * ((q + q_add) . k) + Added + scale * ((q + dot_add) . R[entry])
//
// Scores, scale and tables are in natural units; inside, and in partial states, scores are
// times log2(e) and weights are powers of two.
//
// A row's bits depend on its sequence, the weights and the instruction set: never on the
// batch, on how rows are cut into tiles, or on threads (see "Determinism" in README.md).
// A row that sees no key yields zeros.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/cpu_features.h"
#include "kernels/base/parallel.h"
#include "kernels/base/workspace.h"
#include "kernels/span/kv_layout.h"
#include "kernels/span/plan.h"

namespace longview::kernels {

enum class Layout : int32_t {
  kRows = 0,    // [row, head, D] with strides; the plan's SlotMap says which row a slot is.
  kPanels = 1,  // KvLayout blocks of this source's dtype, [block, key head].
  kPaged = 2,   // KvLayout blocks found by block id: one list of ids per sequence.
};

// Keys and values of one origin. Borrowed for the call. k == v is legal.
struct Source {
  const void* k = nullptr;
  const void* v = nullptr;
  DType dtype = DType::kFloat32;
  Layout layout = Layout::kRows;
  // kRows: strides in elements. A row stride of 0 is one constant row for all slots.
  int64_t k_row_stride = 0, k_head_stride = 0;
  int64_t v_row_stride = 0, v_head_stride = 0;
  // kPanels, kPaged: key heads stored per block, the first being head 0.
  int32_t kv_heads = 0;
  // kPaged: ids of blocks, sequence after sequence; slot j of one lies in its block j / 64.
  const int32_t* block_table = nullptr;
  const int32_t* seq_offset = nullptr;  // kPaged: first entry of sequence s in block_table.
  const float* q_add = nullptr;         // [H, Dk] added to the query for this source; or null.
};

// A bias table. Added: fp32 [H, entries], entries side by side, head_stride 0 = one for all.
// Dotted: rows of dtype [H, entries, Dk] with strides, and an optional dot_add [H, Dk].
struct Table {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  int32_t entries = 0;  // Per head; entries outside are never read.
  int64_t head_stride = 0;
  int64_t entry_stride = 1;
  const float* dot_add = nullptr;
};

// One attention over one plan. All memory is the caller's.
struct Call {
  const void* q = nullptr;  // [rows, H, Dk] of dtype `dtype`, strides in elements.
  void* out = nullptr;      // [rows, H, Dv] of dtype `dtype`; only the tiles' rows are written.
  DType dtype = DType::kFloat32;
  int64_t q_row_stride = 0, q_head_stride = 0;
  int64_t out_row_stride = 0, out_head_stride = 0;
  int Dk = 0, Dv = 0;  // 1 .. kMaxHeadDim.
  int H = 0;
  int kv_group = 1;    // Query heads per key head: query head h reads key head h / kv_group.
  float scale = 1.0f;  // Applied to finished fp32 scores; never folded into bf16 weights.
  std::span<const Source> sources;
  std::span<const Table> tables;
};

// Query rows a planner should put into one tile for this variant (48, AMX: 64).
int TileRows(Isa isa);

// The variant RunPlan uses when asked for `isa`: itself where it is built and the CPU runs
// it and it takes calls of this dtype (bf16 variants take bf16 calls only); else the next
// narrower one, at last the reference.
Isa EffectiveIsa(Isa isa, DType dtype);

// Dtype of the panels a variant reads.
DType PanelDType(Isa isa);

// Scratch for one run: panels of fresh keys and values, partial states, per-thread blocks.
WorkspaceBytes Measure(const Plan& plan, const Call& call, Isa isa);

// Runs the plan. Allocates nothing, throws nothing, owns no thread.
//
// Threads may run different plans at once; plan and call are only read.
//
// REQUIRES: `workspace` holds Measure(plan, call, isa) for pool.threads() threads. Panels
// and pages have the dtype PanelDType(EffectiveIsa(isa, call.dtype)); the reference
// (Isa::kScalar) reads either.
void RunPlan(const Plan& plan, const Call& call, const Workspace& workspace,
             const ParallelFor& pool, Isa isa);

// The contracts between a plan and a call, checked before every run. Aborts when an index, size or
// pointer cannot be right. Linear in tiles and spans, reads no tensor. Thread-safe.
void CheckPlan(const Plan& plan, const Call& call, Isa isa);

}  // namespace longview::kernels
