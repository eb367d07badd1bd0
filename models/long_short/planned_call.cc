#include "models/long_short/planned_call.h"

#include "models/dense/rowwise.h"
#include "models/layers/landmark_row.h"
#include "models/parallel.h"

namespace longview::models {

PlannedCall::PlannedCall(const LongShortPattern& pattern, const ComputeContext& context,
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

const kernels::Call& PlannedCall::Tokens(std::span<const kernels::Table> tables) {
  const int64_t width = pattern_.width;
  const kernels::Source landmarks =
      Rows(buffers_.projected, Column(buffers_.projected, width, context_.compute), 2 * width);
  sources_ = {Fresh(), landmarks, Fresh()};
  call_.sources = sources_;
  call_.tables = tables;
  return call_;
}

const kernels::Call& PlannedCall::ClassRows() {
  const kernels::Source outputs = Rows(buffers_.z, buffers_.z, pattern_.width);
  sources_ = {Fresh(), pattern_.class_sees_outputs ? outputs : Fresh()};
  call_.sources = sources_;
  return call_;
}

kernels::Source PlannedCall::Fresh() const {
  const int64_t width = pattern_.width;
  return Rows(Column(buffers_.qkv, width, context_.compute),
              Column(buffers_.qkv, 2 * width, context_.compute), 3 * width);
}

void PlaceLandmarks(const LongShortPattern& pattern, int64_t images, const Norm* norm,
                    const ComputeContext& context, const LongShortBuffers& buffers) {
  const RowKernels& kernels = ChooseRowKernels(context.compute);
  const int64_t width = pattern.width;
  const int64_t rows = images * pattern.ranks;
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

}  // namespace longview::models
