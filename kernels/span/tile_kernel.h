// The call that executor.cc hands to an instruction set's tile kernel. Internal to kernels/span.
//
// executor.cc checks the call, packs fresh rows into KvLayout panels, gives items to threads
// and merges partial states. A tile kernel does one item: one tile for one head, from panels
// to output rows or partial states.
//
// Determinism (spans.md 6). Per query row a kernel walks the blocks of 64 slots in the order
// of the tile's spans; a score is one chain over d; a masked key leaves the row's state
// exactly as it was; rows never influence each other; a final row is what FinishState makes
// of its state, so that one piece and several pieces of which one has keys are equal bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/span/executor.h"
#include "kernels/span/kv_layout.h"
#include "kernels/span/softmax_state.h"

namespace longview::kernels {

// One source as blocks: packed by executor.cc, given as panels, or paged.
struct PanelSource {
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  size_t k_block_bytes = 0;  // One head.
  size_t v_block_bytes = 0;
  int32_t kv_heads = 0;                  // Heads stored per block.
  int32_t kv_head0 = 0;                  // The first of them.
  const int32_t* block_table = nullptr;  // Null: block ids are slot / 64.
  const int32_t* seq_offset = nullptr;
  const uint64_t* valid = nullptr;  // Bitmap over slots, or null: no holes.
  const float* q_add = nullptr;     // [H, Dk] or null.

  int64_t Cell(int seq, int64_t block, int kv_head) const {
    if (block_table != nullptr) block = block_table[seq_offset[seq] + block];
    return block * kv_heads + (kv_head - kv_head0);
  }
  // Block `block` (slot / 64) of sequence `seq` for key head `kv_head`.
  const std::byte* K(int seq, int64_t block, int kv_head) const {
    return k + Cell(seq, block, kv_head) * k_block_bytes;
  }
  const std::byte* V(int seq, int64_t block, int kv_head) const {
    return v + Cell(seq, block, kv_head) * v_block_bytes;
  }
};

// Everything the items of one run share; read-only while threads run.
struct TileJob {
  const Plan* plan = nullptr;
  const Call* call = nullptr;
  const PanelSource* sources = nullptr;  // One per Call::sources.
  PartialStates partials;                // For tiles with part >= 0.
  int threads = 1;                       // Threads that take items in turns.
};

// Fills one head's K and V block from rows of a kRows source: slot i of the block gets row
// rows[i] of the tensors, -1 = zeros. k and v point at the head's column of row 0.
struct PackBlock {
  const KvLayout* layout = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  DType from = DType::kFloat32;
  int64_t k_row_stride = 0;  // Elements.
  int64_t v_row_stride = 0;
  const int32_t* rows = nullptr;  // [kBlockSlots]
  std::byte* k_block = nullptr;
  std::byte* v_block = nullptr;
};

// One instruction set. Functions allocate nothing and throw nothing.
struct TileKernel {
  Isa isa = Isa::kScalar;
  DType panels = DType::kFloat32;  // Panel format it reads.
  // Exact scratch one thread needs for any item of the plan.
  size_t (*scratch_bytes)(const Plan& plan, const Call& call) = nullptr;
  // `scratch` is 64-byte aligned and private to the thread.
  void (*run)(const TileJob& job, const Item& item, std::byte* scratch) = nullptr;
  // Packs one block; null: the portable packer over KvLayout.
  void (*pack)(const PackBlock& request) = nullptr;
  // Around a thread's work in a parallel region (AMX tile configuration); may be null.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
};

// The kernel of an instruction set, whether or not this CPU runs it (EffectiveIsa knows), or
// null where none is built; tile_kernels.cc holds the list.
const TileKernel* FindTileKernel(Isa isa);

// Measure and RunPlan with a given kernel.
WorkspaceBytes MeasureWith(const TileKernel& kernel, const Plan& plan, const Call& call);
void RunPlanWith(const TileKernel& kernel, const Plan& plan, const Call& call,
                 const Workspace& workspace, const ParallelFor& pool);

// Portable packer: clears the block and writes its rows through KvLayout.
void PackBlockPortable(const PackBlock& request);

// The obviously right tile kernel: scalar, one key after the other, double precision inside.
// Every other instruction set is held to it. Reads every layout in place, rows without packing.
// Needs no scratch. Thread-safe.
extern const TileKernel kReferenceTileKernel;

}  // namespace longview::kernels
