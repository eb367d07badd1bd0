// The process's one set of compute threads, LibTorch's, in the shape `kernels` expects.
#pragma once

#include "kernels/base/parallel.h"

namespace longview::models {

// Runs bodies on LibTorch's threads. Stateless; one object may serve every thread that is
// allowed to compute.
//
// Indices 0 .. threads()-1 are each used exactly once per Run. Inside another parallel region
// they run one after the other on one thread, so a body must never wait for its neighbours.
class TorchParallelFor final : public kernels::ParallelFor {
 public:
  int threads() const override;
  void Run(kernels::ThreadBody body, void* context) const override;
};

// The compute threads that loops of the calling thread use outside of any TeamScope.
int WholeTeam();

// While it lives, loops of the calling thread, LibTorch's and oneDNN's too, run on so many threads.
// Results do not depend on it. Scopes nest; the inner one counts.
class TeamScope {
 public:
  explicit TeamScope(int threads);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  const int before_;
  const bool outermost_;
};

// Half-open ranges of [0, count) of at least `grain` elements each, one per thread.
// The ranges decide only who computes, so a body's results must not depend on them.
template <typename Body>
void ParallelRanges(const kernels::ParallelFor& pool, long count, long grain, Body&& body) {
  const long wanted = grain > 0 ? (count + grain - 1) / grain : count;
  const long pieces = wanted < pool.threads() ? wanted : pool.threads();
  if (pieces <= 1) {
    if (count > 0) body(0L, count);
    return;
  }
  kernels::RunOnThreads(pool, [&](int thread) {
    if (thread >= pieces) return;
    const long begin = count * thread / pieces;
    const long end = count * (thread + 1) / pieces;
    if (begin < end) body(begin, end);
  });
}

}  // namespace longview::models
