// A tile kernel from an instruction set's operations.
#pragma once

#include "kernels/span/tile_kernel.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {

// Scratch of RunTile for any item of the plan.
size_t TileScratchBytes(const Plan& plan, const Call& call, DType panels);

// One tile for one head, for any instruction set: walks the tile's spans block by block, says
// which rows see which keys, and lets VectorOps do the arithmetic. Thread-safe: everything written
// is the thread's scratch and the item's own output.
// REQUIRES: `item` is an element of the plan's items; `scratch` is 64-byte aligned and holds
// TileScratchBytes.
void RunTile(const VectorOps& ops, const TileJob& job, const Item& item, std::byte* scratch);

// Packs one block with ops.pack.
void PackWithOps(const VectorOps& ops, const PackBlock& request);

// The kernel of these operations.
template <const VectorOps& kOps, DType kPanels>
TileKernel VectorKernel(Isa isa) {
  TileKernel kernel;
  kernel.isa = isa;
  kernel.panels = kPanels;
  kernel.scratch_bytes = [](const Plan& plan, const Call& call) {
    return TileScratchBytes(plan, call, kPanels);
  };
  kernel.run = [](const TileJob& job, const Item& item, std::byte* scratch) {
    RunTile(kOps, job, item, scratch);
  };
  kernel.pack = [](const PackBlock& request) { PackWithOps(kOps, request); };
  kernel.enter = kOps.enter;
  kernel.leave = kOps.leave;
  return kernel;
}

}  // namespace longview::kernels
