// A tile kernel from an instruction set's operations.
#pragma once

#include "kernels/span/tile_kernel.h"
#include "kernels/span/tile_walk.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {

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
