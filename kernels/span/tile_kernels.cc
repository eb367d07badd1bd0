#include "kernels/span/executor_ref.h"
#include "kernels/span/tile_kernel.h"

namespace longview::kernels {

const TileKernel* FindTileKernel(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return &kReferenceTileKernel;
    default:
      return nullptr;
  }
}

}  // namespace longview::kernels
