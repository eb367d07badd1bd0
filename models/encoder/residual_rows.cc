#include "models/encoder/residual_rows.h"

#include <cstring>

#include "models/parallel.h"

namespace longview::models {

void ResidualRows::Move(int64_t from, int64_t to, int64_t count) const {
  if (from == to) return;
  std::memmove(x + to * width, x + from * width,
               static_cast<size_t>(count * width) * sizeof(float));
  if (beside == nullptr || beside == reinterpret_cast<std::byte*>(x)) return;
  std::memmove(beside + to * row_bytes, beside + from * row_bytes,
               static_cast<size_t>(count * row_bytes));
}

int64_t KeepWantedRows(const RaggedBatch& batch, const ResidualRows& rows,
                       std::vector<int64_t>& first) {
  int64_t kept = 0;
  for (int s = 0; s < batch.size(); ++s) {
    first.push_back(kept);
    for (const int32_t token : batch.sequences()[s]->wanted) {
      rows.Move(batch.offsets()[s] + token, kept++);
    }
  }
  return kept;
}

void NormLastRows(const Norm& norm, float* x, int64_t rows, const kernels::ParallelFor& pool) {
  const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
  const auto width = static_cast<int64_t>(norm.gamma.size());
  const std::vector<float> zeros(norm.gamma.size());
  ParallelRanges(pool, rows, 8, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      floats.residual_norm(x + row * width, nullptr, zeros.data(), norm.view(), width, nullptr);
    }
  });
}

}  // namespace longview::models
