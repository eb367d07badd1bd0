#include "models/parallel.h"

#include <omp.h>

#include "ATen/Parallel.h"
#include "models/model.h"
#include "models/pauses.h"

namespace longview::models {
namespace {

thread_local int whole_team = 0;  // Set in a TeamScope.

}  // namespace

int WholeTeam() { return whole_team > 0 ? whole_team : at::get_num_threads(); }

// LibTorch asks OpenMP how many threads there are, once it has told it on this thread. Its own
// setter would change what other threads begin with.
TeamScope::TeamScope(int threads) : before_(at::get_num_threads()), outermost_(whole_team == 0) {
  if (outermost_) whole_team = before_;
  if (threads != before_) omp_set_num_threads(threads);
}

TeamScope::~TeamScope() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
  if (outermost_) whole_team = 0;
}

int TorchParallelFor::threads() const { return at::get_num_threads(); }

void TorchParallelFor::Run(kernels::ThreadBody body, void* context) const {
  at::parallel_for(0, threads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) body(context, static_cast<int>(thread));
  });
  if (!at::in_parallel_region()) PauseBetweenLoops();
}

void SetComputeThreads(int threads) { at::set_num_threads(threads); }

}  // namespace longview::models
