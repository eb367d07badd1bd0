// How a loaded model computes, and what all its runs share.
#pragma once

#include <cstddef>

#include "kernels/base/cpu_features.h"
#include "kernels/base/parallel.h"
#include "kernels/span/executor.h"
#include "models/dense/compute.h"
#include "models/layers/span_rows.h"

namespace longview::models {

// The variant of attention that is fastest on inputs of the compute type.
inline kernels::Isa BestIsa(Compute compute) {
  return compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
}

// Borrowed, immutable.
struct ComputeContext {
  ComputeContext() = default;
  ComputeContext(Compute compute, const kernels::ParallelFor& pool)
      : compute(compute), isa(BestIsa(compute)), pool(&pool) {}

  // Rows of a tile in attention plans.
  int tile_rows() const { return kernels::TileRows(kernels::EffectiveIsa(isa, SpanType(compute))); }
  // Stored type of cache blocks.
  kernels::DType block_type() const {
    return kernels::PanelDType(kernels::EffectiveIsa(isa, SpanType(compute)));
  }

  Compute compute = Compute::kFp32;
  kernels::Isa isa = kernels::Isa::kScalar;  // Instruction set of attention.
  const kernels::ParallelFor* pool = nullptr;
};

// The parts that all runs of one model share. Borrowed, immutable.
template <class ConfigT, class WeightsT>
struct ModelContext : ComputeContext {
  using Config = ConfigT;
  using Weights = WeightsT;

  ModelContext() = default;
  ModelContext(const Config& config, const Weights& weights, Compute compute,
               const kernels::ParallelFor& pool)
      : ComputeContext(compute, pool), config(&config), weights(&weights) {}

  const Config* config = nullptr;
  const Weights* weights = nullptr;
};

// Attention of a plan, which may be empty. `workspace` holds what Measure says of the call.
inline void RunSpans(const ComputeContext& context, const kernels::Plan& plan,
                     const kernels::Call& call, std::byte* workspace) {
  if (plan.items.empty()) return;
  const kernels::WorkspaceBytes bytes = Measure(plan, call, context.isa);
  RunPlan(plan, call, kernels::CarveWorkspace(workspace, bytes), *context.pool, context.isa);
}

}  // namespace longview::models
