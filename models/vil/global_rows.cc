#include "models/vil/global_rows.h"

#include <array>
#include <cmath>

#include "models/layers/landmark_row.h"
#include "models/layers/span_rows.h"

namespace longview::models {

VilGlobalBuffers CarveVilGlobals(const VilContext& context, const VilStage& stage, int64_t rows,
                                 Carver& carver) {
  const int columns = stage.heads * stage.globals;
  const int width = stage.head_dim();
  VilGlobalBuffers buffers;
  buffers.queries = carver.Take<float>(int64_t{columns} * width);
  buffers.scores = carver.Take<float>(rows * columns);
  buffers.means = carver.Take<float>(int64_t{columns} * width);
  buffers.thread_rows = carver.Take<float>(int64_t{context.pool->threads()} * stage.width);
  buffers.state = carver.TakeBytes(kernels::PoolStateBytes(columns, {&width, 1}));
  return buffers;
}

VilGlobalRows::VilGlobalRows(const VilContext& context, const VilStage& stage, const VilBias& bias,
                             std::byte* qkv, const VilGlobalBuffers& buffers)
    : context_(context),
      stage_(stage),
      bias_(bias),
      kernels_(ChooseRowKernels(context.compute)),
      qkv_(qkv),
      buffers_(buffers),
      width_(stage.width),
      head_dim_(stage.head_dim()),
      globals_(stage.globals),
      columns_(stage.heads * stage.globals),
      zeros_(stage.width) {
  const auto head_dim = static_cast<int>(head_dim_);
  state_ = kernels::CarvePoolState(buffers.state, columns_, {&head_dim, 1});
}

void VilGlobalRows::Begin() {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim_));
  std::vector<float> row(width_);
  for (int64_t j = 0; j < globals_; ++j) {
    kernels_.bias_widen(Column(qkv_, 3 * width_ * j, context_.compute), zeros_.data(), width_,
                        row.data());
    for (int64_t c = 0; c < width_; ++c) {
      const int64_t head = c / head_dim_, within = c % head_dim_;
      buffers_.queries[(head * globals_ + j) * head_dim_ + within] = scale * row[c];
    }
  }
  const auto head_dim = static_cast<int>(head_dim_);
  kernels::ResetPoolState(state_, columns_, {&head_dim, 1});
  Score(0, globals_, true);
}

void VilGlobalRows::Append(int64_t first, int64_t count) { Score(first, count, false); }

void VilGlobalRows::Score(int64_t first, int64_t count, bool among) {
  const VectorKernels& vectors = ChooseVectorKernels();
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* row = buffers_.thread_rows + thread * width_;
    for (int64_t i = thread; i < count; i += threads) {
      kernels_.bias_widen(Column(qkv_, (3 * (first + i) + 1) * width_, context_.compute),
                          zeros_.data(), width_, row);
      float* scores = buffers_.scores + i * columns_;
      for (int64_t h = 0; h < stage_.heads; ++h, scores += globals_) {
        vectors.dots(row + h * head_dim_, buffers_.queries + h * globals_ * head_dim_, globals_,
                     head_dim_, scores);
        if (!stage_.relative_bias()) continue;
        for (int64_t j = 0; j < globals_; ++j) {
          scores[j] += among ? bias_.global[(h * globals_ + j) * globals_ + i]
                             : bias_.mixed[h * 2 * globals_ + j];
        }
      }
    }
  });
  kernels::PoolValue value;
  value.data = Column(qkv_, (3 * first + 2) * width_, context_.compute);
  value.dtype = SpanType(context_.compute);
  value.row_stride = 3 * width_;
  value.head_stride = head_dim_;
  value.width = static_cast<int>(head_dim_);
  const std::array<int32_t, 2> offsets = {0, static_cast<int32_t>(count)};
  kernels::PoolCall call;
  call.scores = buffers_.scores;
  call.score_stride = call.columns = columns_;
  call.columns_per_head = static_cast<int>(globals_);
  call.offsets = offsets;
  call.values = {&value, 1};
  PoolAppend(call, {&state_, 1}, *context_.pool);
}

void VilGlobalRows::Finish(std::byte* out) {
  const auto head_dim = static_cast<int>(head_dim_);
  float* const means[] = {buffers_.means};
  PoolMeans(state_, columns_, {&head_dim, 1}, means);
  std::vector<float> row(width_);
  for (int64_t j = 0; j < globals_; ++j) {
    JoinLandmark(buffers_.means, {stage_.heads, globals_, head_dim_}, 0, j, row.data());
    kernels_.narrow(row.data(), width_, out + j * width_ * ElementBytes(context_.compute));
  }
}

}  // namespace longview::models
