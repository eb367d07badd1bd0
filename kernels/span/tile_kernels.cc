#include "kernels/span/tile_kernel.h"
#include "kernels/span/vector_kernel.h"

namespace longview::kernels {

const TileKernel* FindTileKernel(Isa isa) {
  static const TileKernel avx2 = VectorKernel<kAvx2Ops, DType::kFloat32>(Isa::kAvx2);
  static const TileKernel avx512 = VectorKernel<kAvx512Ops, DType::kFloat32>(Isa::kAvx512);
  static const TileKernel avx512_bf16 =
      VectorKernel<kAvx512Bf16Ops, DType::kBFloat16>(Isa::kAvx512Bf16);
  static const TileKernel amx = VectorKernel<kAmxOps, DType::kBFloat16>(Isa::kAmxBf16);
  switch (isa) {
    case Isa::kScalar:
      return &kReferenceTileKernel;
    case Isa::kAvx2:
      return &avx2;
    case Isa::kAvx512:
      return &avx512;
    case Isa::kAvx512Bf16:
      return &avx512_bf16;
    case Isa::kAmxBf16:
      return &amx;
  }
  return nullptr;
}

}  // namespace longview::kernels
