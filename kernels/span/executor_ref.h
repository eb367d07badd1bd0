// The obviously right tile kernel: scalar, one key after the other, double precision inside.
// Every other instruction set is held to it.
#pragma once

#include "kernels/span/tile_kernel.h"

namespace longview::kernels {

// Reads every layout in place, rows without packing. Needs no scratch. Thread-safe.
extern const TileKernel kReferenceTileKernel;

}  // namespace longview::kernels
