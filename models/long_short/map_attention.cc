#include "models/long_short/map_attention.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/dense/rowwise.h"
#include "models/layers/landmark_row.h"
#include "models/layers/span_rows.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// The model's rows and what is made of them here.
struct LongShortBuffers : LongShortRows {
  float* pooled = nullptr;         // [2, images, h r, C / h]
  std::byte* projected = nullptr;  // T [images r, 2C]: keys, then values.
  float* thread_rows = nullptr;    // [threads, C]
};

LongShortBuffers Carve(const LongShortPattern& pattern, const LongShortPlan& plan,
                       const ComputeContext& context, const LongShortRows& rows, Carver& carver) {
  const int64_t landmarks = plan.images() * pattern.ranks * pattern.width;
  LongShortBuffers buffers{rows};
  buffers.pooled = carver.Take<float>(2 * landmarks);
  buffers.projected = carver.TakeBytes(2 * landmarks * ElementBytes(context.compute));
  buffers.thread_rows = carver.Take<float>(int64_t{context.pool->threads()} * pattern.width);
  return buffers;
}

// One attention over one plan; storage of the call's sources.
class PlannedCall {
 public:
  PlannedCall(const LongShortPattern& pattern, const ComputeContext& context,
              const LongShortBuffers& buffers)
      : pattern_(pattern), context_(context), buffers_(buffers) {
    const int64_t width = pattern.width;
    call_.dtype = SpanType(context.compute);
    call_.q = buffers.qkv;
    call_.q_row_stride = 3 * width;
    call_.out = buffers.z;
    call_.out_row_stride = width;
    call_.q_head_stride = call_.out_head_stride = pattern.head_dim();
    call_.Dk = call_.Dv = pattern.head_dim();
    call_.H = pattern.heads;
    call_.scale = pattern.scale;
  }
  PlannedCall(const PlannedCall&) = delete;

  const kernels::Call& Tokens(std::span<const kernels::Table> tables) {
    const int64_t width = pattern_.width;
    const kernels::Source landmarks =
        Rows(buffers_.projected, Column(buffers_.projected, width, context_.compute), 2 * width);
    sources_ = {Fresh(), landmarks, Fresh()};
    call_.sources = sources_;
    call_.tables = tables;
    return call_;
  }

  const kernels::Call& ClassRows() {
    const kernels::Source outputs = Rows(buffers_.z, buffers_.z, pattern_.width);
    sources_ = {Fresh(), pattern_.class_sees_outputs ? outputs : Fresh()};
    call_.sources = sources_;
    return call_;
  }

 private:
  kernels::Source Rows(const void* k, const void* v, int64_t row_stride) const {
    return RowsSource(k, v, context_.compute, row_stride, pattern_.head_dim());
  }
  kernels::Source Fresh() const {
    const int64_t width = pattern_.width;
    return Rows(Column(buffers_.qkv, width, context_.compute),
                Column(buffers_.qkv, 2 * width, context_.compute), 3 * width);
  }

  const LongShortPattern& pattern_;
  const ComputeContext& context_;
  const LongShortBuffers& buffers_;
  std::vector<kernels::Source> sources_;
  kernels::Call call_;
};

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

// Rows of the landmarks' source: heads side by side, normalised together.
void PlaceLandmarks(const LongShortPattern& pattern, const LongShortPlan& plan, const Norm* norm,
                    const ComputeContext& context, const LongShortBuffers& buffers) {
  const RowKernels& kernels = ChooseRowKernels(context.compute);
  const int64_t width = pattern.width;
  const int64_t rows = plan.images() * pattern.ranks;
  const std::vector<float> zeros(width);
  const int threads = context.pool->threads();
  kernels::RunOnThreads(*context.pool, [&](int thread) {
    float* row = buffers.thread_rows + thread * width;
    for (int64_t i = thread; i < 2 * rows; i += threads) {
      const int64_t part = i / rows, landmark = i % rows;
      const float* pooled = buffers.pooled + part * rows * width;
      JoinLandmark(pooled, {pattern.heads, pattern.ranks, pattern.head_dim()},
                   landmark / pattern.ranks, landmark % pattern.ranks, row);
      std::byte* to = Column(buffers.projected, (2 * landmark + part) * width, context.compute);
      if (norm == nullptr) {
        kernels.narrow(row, width, to);
      } else {
        kernels.norm(row, norm->view(), width, to);
      }
    }
  });
}

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
                  const ComputeContext& context, const LongShortRows& rows) {
  Carver carver(rows.landmarks);
  const LongShortBuffers buffers = Carve(pattern, plan, context, rows, carver);
  if (pattern.ranks > 0) {
    Pooling(pattern, plan, context, buffers).Run(buffers.workspace, *context.pool);
    PlaceLandmarks(pattern, plan, landmark_norm, context, buffers);
  }
  PlannedCall planned(pattern, context, buffers);
  RunSpans(context, plan.tokens, planned.Tokens(tables), buffers.workspace);
  RunSpans(context, plan.class_rows, planned.ClassRows(), buffers.workspace);
}

}  // namespace longview::models
