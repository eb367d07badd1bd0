// Operations on LibTorch's threads: each is fused panel by panel, while a panel is in cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/cost/stopwatch.h"
#include "models/layers/compute_context.h"
#include "models/layers/panels.h"
#include "models/ops/backend.h"
#include "models/parallel.h"

namespace longview::models {

class HostBackend final : public Backend {
 public:
  // Counts.
  explicit HostBackend(const ComputeContext& context);
  // `memory` holds need.memory() bytes, 64-byte aligned. All is borrowed; `times` may be null.
  HostBackend(const ComputeContext& context, const ForwardNeed& need, std::byte* memory,
              RunTimes* times);

  // ---- For operations ----
  const ComputeContext& context() const { return context_; }
  const kernels::ParallelFor& pool() const { return *context_.pool; }
  int threads() const { return context_.pool->threads(); }
  const RowKernels& kernels() const { return kernels_; }  // For rows of the compute type.
  const RowKernels& floats() const { return floats_; }    // For fp32 rows.
  RunTimes* times() const { return times_; }
  Stopwatch Timed(double RunTimes::*sum) const {
    return Stopwatch(times_ ? &(times_->*sum) : nullptr);
  }
  // Memory that one operation has to itself. Taken before Runs, which says whether it is there.
  Carver Scratch() const { return Carver(scratch_); }
  // Zeros for a norm or sum without a bias.
  const float* Zeros(int64_t width);

  // body(i) for i < count on all threads, timed as the rest.
  template <typename Body>
  void Each(int64_t count, Body&& body) const {
    const Stopwatch watch = Timed(&RunTimes::rest);
    ParallelRanges(*context_.pool, count, kGrain, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) body(i);
    });
  }
  // Scratch of a linear for `in`'s rows.
  std::byte* TakeProducts(const Weight& weight, const Rows& in, Carver& scratch) const;
  // use(row, y) for every row of y = in W^T: by panels, or few rows at once through `products`.
  template <typename Use>
  void Multiply(const Weight& weight, const Rows& in, std::byte* products, Use&& use) const {
    const DenseLayer& layer = *weight.host;
    if (in.few) {
      ForEachFewRow(layer, in.data, in.count, products, *context_.pool, times_, use);
    } else {
      ForEachRow(layer, in.data, in.count, layer.linear.sizes(), *context_.pool, times_, use);
    }
  }
  // The threads for small work on `rows` rows: waking them costs more than a few rows do.
  const kernels::ParallelFor& PoolFor(int64_t rows) const {
    constexpr int64_t kFewRows = 4;
    if (rows <= kFewRows) return serial_;
    return *context_.pool;
  }
  const kernels::SerialFor& serial() const { return serial_; }

  // See Backend::TakeResults.
  std::byte* TakeResults(int64_t floats) {
    results_.resize(static_cast<size_t>(floats));
    return reinterpret_cast<std::byte*>(results_.data());
  }

 private:
  // Rows that a thread takes at least: fewer cost more to hand out than to treat.
  static constexpr long kGrain = 8;

  const ComputeContext context_;
  const RowKernels& kernels_;
  const RowKernels& floats_;
  std::byte* const scratch_;
  RunTimes* const times_;
  const kernels::SerialFor serial_;
  std::vector<float> zeros_, results_;
};

}  // namespace longview::models
