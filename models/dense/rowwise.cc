#include "models/dense/rowwise.h"

#include "kernels/base/cpu_features.h"

namespace longview::models {

namespace baseline {
extern const RowKernels kFloatRows, kBf16Rows;
extern const VectorKernels kVectors;
}  // namespace baseline
namespace avx2 {
extern const RowKernels kFloatRows, kBf16Rows;
extern const VectorKernels kVectors;
}  // namespace avx2
namespace avx512 {
extern const RowKernels kFloatRows, kBf16Rows;
extern const VectorKernels kVectors;
}  // namespace avx512

const RowKernels& ChooseRowKernels(Compute compute) {
  const bool is_float = compute == Compute::kFp32;
  switch (kernels::BestFloatIsa()) {
    case kernels::Isa::kScalar:
      return is_float ? baseline::kFloatRows : baseline::kBf16Rows;
    case kernels::Isa::kAvx2:
      return is_float ? avx2::kFloatRows : avx2::kBf16Rows;
    default:
      return is_float ? avx512::kFloatRows : avx512::kBf16Rows;
  }
}

const VectorKernels& ChooseVectorKernels() {
  switch (kernels::BestFloatIsa()) {
    case kernels::Isa::kScalar:
      return baseline::kVectors;
    case kernels::Isa::kAvx2:
      return avx2::kVectors;
    default:
      return avx512::kVectors;
  }
}

}  // namespace longview::models
