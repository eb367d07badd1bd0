#include <cstring>

#include "models/ops/embed.h"
#include "models/ops/host_backend.h"

namespace longview::models::ops {

void Embed::OnHost(HostBackend& host) const {
  constexpr int64_t kTables = 3;  // A thread has a row of each.
  const int64_t width = x.width;
  const int threads = host.threads();
  Carver taken = host.Scratch();
  float* const all_scratch = taken.Take<float>(kTables * width * threads);
  if (!host.Runs(taken)) return;
  const Stopwatch watch = host.Timed(&RunTimes::rest);
  const VectorKernels& vectors = ChooseVectorKernels();
  const float* zeros = host.Zeros(width);
  const auto bytes = static_cast<size_t>(width) * sizeof(float);
  kernels::RunOnThreads(host.pool(), [&](int thread) {
    float* scratch = all_scratch + kTables * width * thread;
    const auto read = [&](const Table* table, IndexRef rows, int64_t row, int to) -> const float* {
      if (table == nullptr) return zeros;
      table->CopyRow(rows.data[row], scratch + to * width);
      return scratch + to * width;
    };
    const int64_t begin = x.count * thread / threads;
    const int64_t end = x.count * (thread + 1) / threads;
    for (int64_t row = begin; row < end; ++row) {
      const float* word = read(words, ids, row, 0);
      const float* position = read(positions, places, row, 1);
      const float* type = read(types, kinds, row, 2);
      float* to = x.floats() + row * width;
      void* copy = input && input.data != x.data ? input.Row(row) : nullptr;
      if (norm != nullptr && factor == 1) {
        host.kernels().sum_norm(to, word, position, type, norm->host.view(), width, copy);
      } else {
        // From zeros, factor * word is rounded by itself before the position is added; from the
        // position, one step may do both.
        std::memcpy(to, rounds_words ? zeros : position, bytes);
        vectors.add_scaled(to, word, factor, width);
        if (rounds_words) vectors.add_scaled(to, position, 1, width);
        if (types != nullptr) vectors.add_scaled(to, type, 1, width);
        if (norm != nullptr) {
          host.kernels().residual_norm(to, nullptr, zeros, norm->host.view(), width, copy);
        }
      }
      // A norm's copy is of 16-bit types alone.
      const bool copied = norm != nullptr && host.compute() != Compute::kFp32;
      if (copy != nullptr && !copied) host.kernels().narrow(to, width, copy);
    }
  });
}

}  // namespace longview::models::ops
