// The buffers of a batch in one stage, and the calls of attention over them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/pool/performer.h"
#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/layers/open_rows.h"
#include "models/vil/context.h"
#include "models/vil/stage_plan.h"

namespace longview::models {

// "T" is an element of the compute type; "band" are the rows of the largest band.
struct VilBuffers {
  float* x = nullptr;              // [rows, d] residual stream.
  std::byte* panel = nullptr;      // T [panel, widest patch].
  std::byte* rows = nullptr;       // T [band + panel, d] LN(x); then attention's output.
  std::byte* qkv = nullptr;        // T [band, 3d]
  std::byte* global_q = nullptr;   // T [rows, d], separate global projections only.
  std::byte* global_kv = nullptr;  // T [rows, 2d]
  float* keys = nullptr;           // [projected keys, 2d]: keys, then values, of a row.
  float* scores = nullptr;         // [band, h r], long-short attention only.
  std::byte* outputs = nullptr;  // Of a large map: T [rows + panel, d], before [rows, h r] scores.
  std::byte* long_short = nullptr;  // LongShortBytes, LongShortSliceBytes.
  std::byte* workspace = nullptr;
  OpenRowsBuffers globals;  // Slices only.
};

// The global tokens of a stage, as rows that see a map in slices.
OpenRowsShape GlobalRows(const VilStage& stage);

// One attention of a stage over these buffers: which rows, which tables. Storage is the object's.
class VilCall {
 public:
  // `block` < 0: for measuring, no tables.
  VilCall(const VilContext& context, size_t stage, const VilAttentionPlan& plan, int block,
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

// Biases between local tokens in block `block`, one table per map.
std::vector<kernels::Table> LocalTables(std::span<const VilMapEntry> maps, int heads, int block);

// Performer's attention of a stage.
kernels::PerformerCall MakePerformerCall(const VilContext& context, const VilStage& stage,
                                         const VilStagePlan& plan, const VilBuffers& buffers);

// All but x and panel, which PlannedBatch places.
VilBuffers CarveVilStage(const VilContext& context, size_t stage, const VilStagePlan& plan,
                         Carver& carver);

}  // namespace longview::models
