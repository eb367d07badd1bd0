#include "models/long_short/map_attention.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/layers/span_rows.h"
#include "models/long_short/planned_call.h"

namespace longview::models {
namespace {

LongShortBuffers Carve(const LongShortPattern& pattern, const LongShortPlan& plan,
                       const ComputeContext& context, const LongShortMapRows& rows, Carver& carver) {
  const int64_t landmarks = plan.images() * pattern.ranks * pattern.width;
  LongShortBuffers buffers{rows};
  buffers.pooled = carver.Take<float>(2 * landmarks);
  buffers.projected = carver.TakeBytes(2 * landmarks * ElementBytes(context.compute));
  buffers.thread_rows = carver.Take<float>(int64_t{context.pool->threads()} * pattern.width);
  return buffers;
}

// Pools keys and values, with one set of weights or each with its own.
class Pooling {
 public:
  Pooling(const LongShortPattern& pattern, const LongShortPlan& plan, const ComputeContext& context,
          const LongShortBuffers& buffers)
      : separate_(buffers.value_scores != nullptr) {
    kernels::PoolCall call;
    call.scores = buffers.scores;
    call.score_stride = call.columns = pattern.columns();
    call.columns_per_head = pattern.ranks;
    call.visible = plan.in_map.data();
    call.offsets = plan.offsets;
    const int64_t outputs = plan.images() * pattern.columns() * pattern.head_dim();
    for (int part = 0; part < 2; ++part) {
      kernels::PoolValue& value = values_[part];
      value.data = Column(buffers.qkv, (1 + part) * pattern.width, context.compute);
      value.dtype = SpanType(context.compute);
      value.row_stride = 3 * pattern.width;
      value.head_stride = value.width = pattern.head_dim();
      value.out = buffers.pooled == nullptr ? nullptr : buffers.pooled + part * outputs;
    }
    calls_ = {call, call};
    calls_[0].values = std::span(values_).first(separate_ ? 1 : 2);
    calls_[1].values = std::span(values_).last(1);
    calls_[1].scores = buffers.value_scores;
  }
  Pooling(const Pooling&) = delete;

  kernels::WorkspaceBytes Bytes() const { return MeasurePool(calls_[0]); }

  void Run(std::byte* workspace, const kernels::ParallelFor& pool) const {
    for (int i = 0; i < (separate_ ? 2 : 1); ++i) {
      PoolSegments(calls_[i], kernels::CarveWorkspace(workspace, Bytes()), pool);
    }
  }

 private:
  bool separate_;
  std::array<kernels::PoolValue, 2> values_;
  std::array<kernels::PoolCall, 2> calls_;
};

}  // namespace

size_t LongShortBytes(const LongShortPattern& pattern, const LongShortPlan& plan,
                      const ComputeContext& context) {
  Carver carver(nullptr);
  Carve(pattern, plan, context, {}, carver);
  return carver.used();
}

size_t LongShortWorkspace(const LongShortPattern& pattern, const LongShortPlan& plan,
                          const ComputeContext& context) {
  const LongShortBuffers none;
  const int threads = context.pool->threads();
  PlannedCall call(pattern, context, none);
  size_t bytes = Measure(plan.tokens, call.Tokens({}), context.isa).total(threads);
  if (!plan.class_rows.items.empty()) {
    bytes = std::max(bytes, Measure(plan.class_rows, call.ClassRows(), context.isa).total(threads));
  }
  if (pattern.ranks > 0) {
    bytes = std::max(bytes, Pooling(pattern, plan, context, none).Bytes().total(threads));
  }
  return bytes;
}

void RunLongShort(const LongShortPattern& pattern, const LongShortPlan& plan,
                  const Norm* landmark_norm, std::span<const kernels::Table> tables,
                  const ComputeContext& context, const LongShortMapRows& rows) {
  Carver carver(rows.landmarks);
  const LongShortBuffers buffers = Carve(pattern, plan, context, rows, carver);
  if (pattern.ranks > 0) {
    Pooling(pattern, plan, context, buffers).Run(buffers.workspace, *context.pool);
    PlaceLandmarks(pattern, plan.images(), landmark_norm, context, buffers);
  }
  PlannedCall planned(pattern, context, buffers);
  RunSpans(context, plan.tokens, planned.Tokens(tables), buffers.workspace);
  RunSpans(context, plan.class_rows, planned.ClassRows(), buffers.workspace);
}

}  // namespace longview::models
