// The buffers of one batch: sized from its stage plans, carved out of one block, used by every
// stage in turn.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/cpu_features.h"
#include "kernels/base/parallel.h"
#include "kernels/pool/performer.h"
#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/vil/config.h"
#include "models/vil/stage_plan.h"
#include "models/vil/weights.h"

namespace longview::models {

// What every run of one model shares. Borrowed, immutable.
struct VilContext {
  const VilConfig* config = nullptr;
  const VilWeights* weights = nullptr;
  Compute compute = Compute::kFp32;
  kernels::Isa isa = kernels::Isa::kScalar;
  const kernels::ParallelFor* pool = nullptr;
};

// "T" is an element of the compute type.
struct VilBuffers {
  float* x[2] = {};                // [rows, d] residual stream; stages take turns.
  std::byte* panel = nullptr;      // T [panel, widest input of a linear]
  std::byte* normed = nullptr;     // T [rows + panel, d], spatial reduction only.
  std::byte* qkv = nullptr;        // T [rows, 3d]
  std::byte* z = nullptr;          // T [rows + panel, d] attention's output.
  std::byte* global_q = nullptr;   // T [rows, d], separate global projections only.
  std::byte* global_kv = nullptr;  // T [rows, 2d]
  float* keys = nullptr;           // [projected keys, 2d]: keys, then values, of a row.
  std::byte* workspace = nullptr;
};

// One attention of a stage over these buffers: which rows, which tables. Storage is the object's.
class VilCall {
 public:
  // `block` < 0: for measuring, no tables.
  VilCall(const VilContext& context, size_t stage, const VilStagePlan& plan, int block,
          const VilBuffers& buffers, bool separate_globals);
  VilCall(const VilCall&) = delete;

  const kernels::Call& call() const { return call_; }

 private:
  void SetSources(const VilContext& context, const VilStage& stage, const VilBuffers& buffers,
                  bool separate_globals);

  kernels::Call call_;
  std::vector<kernels::Source> sources_;
  std::vector<kernels::Table> tables_;
  std::vector<float> zeros_;
};

// Performer's attention of a stage.
kernels::PerformerCall MakePerformerCall(const VilContext& context, const VilStage& stage,
                                         const VilStagePlan& plan, const VilBuffers& buffers);

// Maxima over the stages of a batch.
VilBuffers CarveVilBuffers(const VilContext& context, std::span<const VilStagePlan> plans,
                           Carver& carver);

}  // namespace longview::models
