#include "models/long_short/class_rows.h"

#include <array>

#include "models/layers/landmark_row.h"
#include "models/layers/span_rows.h"
#include "models/parallel.h"

namespace longview::models {

ClassRowBuffers CarveClassRows(const LongShortPattern& pattern, const ComputeContext& context,
                               int64_t rows, Carver& carver) {
  const int columns = pattern.heads * pattern.class_tokens;
  const int width = pattern.head_dim();
  ClassRowBuffers buffers;
  buffers.queries = carver.Take<float>(int64_t{columns} * width);
  buffers.scores = carver.Take<float>(rows * columns);
  buffers.means = carver.Take<float>(int64_t{columns} * width);
  buffers.thread_rows = carver.Take<float>(int64_t{context.pool->threads()} * pattern.width);
  buffers.state = carver.TakeBytes(kernels::PoolStateBytes(columns, {&width, 1}));
  return buffers;
}

ClassRows::ClassRows(const LongShortPattern& pattern, const ComputeContext& context,
                     const ClassRowBuffers& buffers)
    : pattern_(pattern),
      context_(context),
      buffers_(buffers),
      kernels_(ChooseRowKernels(context.compute)),
      width_(pattern.width),
      head_dim_(pattern.head_dim()),
      count_(pattern.class_tokens),
      zeros_(pattern.width) {
  const auto width = static_cast<int>(head_dim_);
  state_ =
      kernels::CarvePoolState(buffers.state, pattern.heads * pattern.class_tokens, {&width, 1});
}

void ClassRows::Begin(std::byte* qkv) {
  const auto width = static_cast<int>(head_dim_);
  kernels::ResetPoolState(state_, pattern_.heads * pattern_.class_tokens, {&width, 1});
  std::vector<float> row(width_);
  for (int64_t j = 0; j < count_; ++j) {
    kernels_.bias_widen(Column(qkv, 3 * width_ * j, context_.compute), zeros_.data(), width_,
                        row.data());
    for (int64_t c = 0; c < width_; ++c) {
      const int64_t head = c / head_dim_, within = c % head_dim_;
      buffers_.queries[(head * count_ + j) * head_dim_ + within] = pattern_.scale * row[c];
    }
  }
  Add(Column(qkv, width_, context_.compute), Column(qkv, 2 * width_, context_.compute), 3 * width_,
      count_);
}

void ClassRows::Append(std::byte* z, int64_t count) { Add(z, z, width_, count); }

void ClassRows::Add(std::byte* keys, std::byte* values, int64_t stride, int64_t count) {
  const VectorKernels& vectors = ChooseVectorKernels();
  const int64_t columns = pattern_.heads * count_;
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* row = buffers_.thread_rows + thread * width_;
    for (int64_t i = thread; i < count; i += threads) {
      kernels_.bias_widen(Column(keys, i * stride, context_.compute), zeros_.data(), width_, row);
      for (int64_t h = 0; h < pattern_.heads; ++h) {
        vectors.dots(row + h * head_dim_, buffers_.queries + h * count_ * head_dim_, count_,
                     head_dim_, buffers_.scores + i * columns + h * count_);
      }
    }
  });
  kernels::PoolValue value;
  value.data = values;
  value.dtype = SpanType(context_.compute);
  value.row_stride = stride;
  value.head_stride = head_dim_;
  value.width = static_cast<int>(head_dim_);
  const std::array<int32_t, 2> offsets = {0, static_cast<int32_t>(count)};
  kernels::PoolCall call;
  call.scores = buffers_.scores;
  call.score_stride = columns;
  call.columns = static_cast<int>(columns);
  call.columns_per_head = static_cast<int>(count_);
  call.offsets = offsets;
  call.values = {&value, 1};
  PoolAppend(call, {&state_, 1}, *context_.pool);
}

void ClassRows::Finish(std::byte* z) {
  const auto width = static_cast<int>(head_dim_);
  float* const means[] = {buffers_.means};
  PoolMeans(state_, pattern_.heads * pattern_.class_tokens, {&width, 1}, means);
  std::vector<float> row(width_);
  for (int64_t j = 0; j < count_; ++j) {
    JoinLandmark(buffers_.means, {pattern_.heads, count_, head_dim_}, 0, j, row.data());
    kernels_.narrow(row.data(), width_, Column(z, j * width_, context_.compute));
  }
}

}  // namespace longview::models
