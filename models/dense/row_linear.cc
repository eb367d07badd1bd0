#include "models/dense/row_linear.h"

#include "kernels/base/bfloat16.h"
#include "models/dense/rowwise.h"

namespace longview::models {
namespace {

struct RowScratch {
  float* x = nullptr;           // [kRows, in] widened; bf16 only.
  float* y = nullptr;           // [kRows, out]
  std::byte* narrow = nullptr;  // [kRows, out] in bf16; bf16 only.
};

RowScratch Carve(int64_t out, int64_t in, Compute compute, Carver& carver) {
  RowScratch scratch;
  scratch.y = carver.Take<float>(RowLinear::kRows * out);
  if (compute == Compute::kFp32) return scratch;
  scratch.x = carver.Take<float>(RowLinear::kRows * in);
  scratch.narrow =
      carver.TakeBytes(static_cast<size_t>(RowLinear::kRows * out * ElementBytes(compute)));
  return scratch;
}

// Rows of bfloat16 are read in pairs.
kernels::DType PackType(int64_t in, Compute compute) {
  return compute == Compute::kBf16 && in % 2 == 0 ? kernels::DType::kBFloat16
                                                  : kernels::DType::kFloat32;
}

}  // namespace

bool RowLinear::Pays(Compute compute) {
  if (kernels::BestFloatIsa() == kernels::Isa::kScalar) return false;
  return compute == Compute::kFp32 || !kernels::IsaSupported(kernels::Isa::kAmxBf16);
}

size_t RowLinear::PackBytes(int64_t out, int64_t in, Compute compute) {
  return kernels::AlignUp(kernels::RowWeightBytes(out, in, PackType(in, compute)));
}

RowLinear::RowLinear(std::span<const float> weight, int64_t out, int64_t in, Compute compute,
                     std::byte* memory)
    : weight_{memory, PackType(in, compute), out, in}, compute_(compute) {
  kernels::PackRowWeight(weight, out, in, weight_.dtype, memory);
}

size_t RowLinear::ScratchBytes(int64_t out, int64_t in, Compute compute) {
  Carver measure(nullptr);
  Carve(out, in, compute, measure);
  return measure.used();
}

std::byte* RowLinear::Multiply(const std::byte* x, int64_t rows, std::byte* scratch,
                               const kernels::ParallelFor& pool) const {
  Carver carver(scratch);
  const RowScratch to = Carve(weight_.out, weight_.in, compute_, carver);
  const kernels::Isa isa = kernels::BestFloatIsa();
  if (compute_ == Compute::kFp32) {
    MultiplyRows(weight_, reinterpret_cast<const float*>(x), weight_.in, rows, to.y, weight_.out,
                 pool, isa);
    return reinterpret_cast<std::byte*>(to.y);
  }
  const auto* narrow = reinterpret_cast<const uint16_t*>(x);
  for (int64_t i = 0; i < rows * weight_.in; ++i) to.x[i] = kernels::BFloat16ToFloat(narrow[i]);
  MultiplyRows(weight_, to.x, weight_.in, rows, to.y, weight_.out, pool, isa);
  const RowKernels& kernels = ChooseRowKernels(compute_);
  for (int64_t r = 0; r < rows; ++r) {
    kernels.narrow(to.y + r * weight_.out, weight_.out,
                   to.narrow + r * weight_.out * ElementBytes(compute_));
  }
  return to.narrow;
}

}  // namespace longview::models
