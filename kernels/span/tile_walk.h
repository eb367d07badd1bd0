// One tile for one head, for any instruction set: walks the tile's spans block by block, says
// which rows see which keys, and lets VectorOps do the arithmetic.
//
// Thread-safe: everything written is the thread's scratch and the item's own output.
#pragma once

#include "kernels/span/tile_kernel.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {

// Scratch of RunTile for any item of the plan.
size_t TileScratchBytes(const Plan& plan, const Call& call, DType panels);

// REQUIRES: `item` is an element of the plan's items; `scratch` is 64-byte aligned and holds
// TileScratchBytes.
void RunTile(const VectorOps& ops, const TileJob& job, const Item& item, std::byte* scratch);

// Packs one block with ops.pack.
void PackWithOps(const VectorOps& ops, const PackBlock& request);

}  // namespace longview::kernels
