// Runs plans in tests: exact workspace with canaries behind every part, any number of
// threads, every instruction set of this machine.
#pragma once

#include <vector>

#include "kernels/span/executor.h"
#include "kernels/span/tile_kernel.h"

namespace longview::kernels::testing {

// Runs a body on fresh threads.
class Threads final : public ParallelFor {
 public:
  explicit Threads(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }
  void Run(ThreadBody body, void* context) const override;

 private:
  int threads_;
};

// RunPlan with a workspace of exactly Measure() bytes; fails the test when anything behind
// its parts was written.
void RunChecked(const Plan& plan, const Call& call, Isa isa, int threads = 1);

// RunChecked with a given kernel.
void RunCheckedWith(const TileKernel& kernel, const Plan& plan, const Call& call, int threads = 1);

// The variants that run here for calls of `dtype`; prints which are skipped and why.
std::vector<Isa> IsasToTest(DType dtype);

// Largest difference to double precision that a variant may show on values of size 1.
double Tolerance(Isa isa, DType dtype);

}  // namespace longview::kernels::testing
