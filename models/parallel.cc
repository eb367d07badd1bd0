#include "models/parallel.h"

#include "ATen/Parallel.h"
#include "models/model.h"
#include "models/pauses.h"

namespace longview::models {

int TorchParallelFor::threads() const { return at::get_num_threads(); }

void TorchParallelFor::Run(kernels::ThreadBody body, void* context) const {
  at::parallel_for(0, threads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) body(context, static_cast<int>(thread));
  });
  if (!at::in_parallel_region()) PauseBetweenLoops();
}

void SetComputeThreads(int threads) { at::set_num_threads(threads); }

}  // namespace longview::models
