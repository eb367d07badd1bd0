#include "models/layers/open_rows.h"

#include <array>

#include "models/layers/landmark_row.h"
#include "models/layers/span_rows.h"
#include "models/parallel.h"

namespace longview::models {

OpenRowsBuffers CarveOpenRows(const OpenRowsShape& shape, const ComputeContext& context,
                              int64_t keys, Carver& carver) {
  const auto width = static_cast<int>(shape.head_dim());
  OpenRowsBuffers buffers;
  buffers.queries = carver.Take<float>(shape.columns() * width);
  buffers.scores = carver.Take<float>(keys * shape.columns());
  buffers.means = carver.Take<float>(shape.columns() * width);
  buffers.thread_rows = carver.Take<float>(int64_t{context.pool->threads()} * shape.width);
  buffers.state =
      carver.TakeBytes(kernels::PoolStateBytes(static_cast<int>(shape.columns()), {&width, 1}));
  return buffers;
}

OpenRows::OpenRows(const OpenRowsShape& shape, const ComputeContext& context,
                   const OpenRowsBuffers& buffers)
    : shape_(shape),
      context_(context),
      buffers_(buffers),
      kernels_(ChooseRowKernels(context.compute)),
      zeros_(shape.width) {
  const auto width = static_cast<int>(shape.head_dim());
  state_ = kernels::CarvePoolState(buffers.state, static_cast<int>(shape.columns()), {&width, 1});
}

void OpenRows::Begin(std::byte* queries, int64_t stride) {
  const auto width = static_cast<int>(shape_.head_dim());
  kernels::ResetPoolState(state_, static_cast<int>(shape_.columns()), {&width, 1});
  std::vector<float> row(shape_.width);
  for (int64_t j = 0; j < shape_.rows; ++j) {
    kernels_.bias_widen(Column(queries, j * stride, context_.compute), zeros_.data(), shape_.width,
                        row.data());
    for (int64_t c = 0; c < shape_.width; ++c) {
      const int64_t head = c / width, within = c % width;
      buffers_.queries[(head * shape_.rows + j) * width + within] = shape_.scale * row[c];
    }
  }
}

void OpenRows::Score(const OpenRowsKeys& keys, const OpenRowsBias& bias) {
  const VectorKernels& vectors = ChooseVectorKernels();
  const int64_t head_dim = shape_.head_dim();
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* row = buffers_.thread_rows + thread * shape_.width;
    for (int64_t i = thread; i < keys.count; i += threads) {
      kernels_.bias_widen(Column(keys.keys, i * keys.stride, context_.compute), zeros_.data(),
                          shape_.width, row);
      float* scores = buffers_.scores + i * shape_.columns();
      for (int64_t h = 0; h < shape_.heads; ++h, scores += shape_.rows) {
        vectors.dots(row + h * head_dim, buffers_.queries + h * shape_.rows * head_dim, shape_.rows,
                     head_dim, scores);
        if (bias.data == nullptr) continue;
        for (int64_t j = 0; j < shape_.rows; ++j) {
          scores[j] += bias.data[h * bias.head + j * bias.row + i * bias.key];
        }
      }
    }
  });
}

void OpenRows::Append(const OpenRowsKeys& keys, const OpenRowsBias& bias) {
  Score(keys, bias);
  kernels::PoolValue value;
  value.data = keys.values;
  value.dtype = SpanType(context_.compute);
  value.row_stride = keys.stride;
  value.head_stride = shape_.head_dim();
  value.width = static_cast<int>(shape_.head_dim());
  const std::array<int32_t, 2> offsets = {0, static_cast<int32_t>(keys.count)};
  kernels::PoolCall call;
  call.scores = buffers_.scores;
  call.columns = static_cast<int>(shape_.columns());
  call.score_stride = call.columns;
  call.columns_per_head = static_cast<int>(shape_.rows);
  call.offsets = offsets;
  call.values = {&value, 1};
  PoolAppend(call, {&state_, 1}, *context_.pool);
}

void OpenRows::Finish(std::byte* out) {
  const auto width = static_cast<int>(shape_.head_dim());
  float* const means[] = {buffers_.means};
  PoolMeans(state_, static_cast<int>(shape_.columns()), {&width, 1}, means);
  std::vector<float> row(shape_.width);
  for (int64_t j = 0; j < shape_.rows; ++j) {
    JoinLandmark(buffers_.means, {shape_.heads, shape_.rows, width}, 0, j, row.data());
    kernels_.narrow(row.data(), shape_.width, Column(out, j * shape_.width, context_.compute));
  }
}

}  // namespace longview::models
