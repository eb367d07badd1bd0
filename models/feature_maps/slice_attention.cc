#include "models/feature_maps/slice_attention.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/dense/rowwise.h"
#include "models/layers/landmark_row.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

OpenRowsShape ClassRows(const LongShortPattern& pattern) {
  return {pattern.class_tokens, pattern.heads, pattern.width, pattern.scale};
}

// Sources: 0 class tokens, 1 landmarks, 2 what the slice loads; see LongShortPlan.
using SliceSources = std::array<kernels::Source, 3>;

SliceSources SourcesOf(const LongShortPattern& pattern, const ComputeContext& context,
                       const LongShortSliceRows& rows, const SliceScratch& scratch) {
  const int64_t width = pattern.width;
  const auto source = [&](std::byte* keys, int64_t values, int64_t stride) {
    return RowsSource(keys, Column(keys, values, context.compute), context.compute, stride,
                      pattern.head_dim());
  };
  const kernels::Source fresh = source(Column(rows.qkv, width, context.compute), width, 3 * width);
  return {fresh, source(scratch.projected, width, 2 * width), fresh};
}

kernels::Call CallOf(const LongShortPattern& pattern, const ComputeContext& context,
                     const LongShortSliceRows& rows, const SliceSources& sources) {
  kernels::Call call;
  call.dtype = SpanType(context.compute);
  call.q = rows.qkv;
  call.q_row_stride = 3 * pattern.width;
  call.out_row_stride = pattern.width;
  call.q_head_stride = call.out_head_stride = pattern.head_dim();
  call.Dk = call.Dv = pattern.head_dim();
  call.H = pattern.heads;
  call.scale = pattern.scale;
  call.sources = sources;
  return call;
}

}  // namespace

SliceScratch CarveSliceScratch(const LongShortPattern& pattern, const ComputeContext& context,
                               int64_t rows, Carver& carver) {
  const int64_t landmarks = int64_t{pattern.ranks} * pattern.width;
  SliceScratch scratch;
  scratch.pooled = carver.Take<float>(2 * landmarks);
  scratch.projected =
      carver.TakeBytes(static_cast<size_t>(2 * landmarks * ElementBytes(context.compute)));
  scratch.thread_rows = carver.Take<float>(int64_t{context.pool->threads()} * pattern.width);
  scratch.class_rows = CarveOpenRows(ClassRows(pattern), context, rows, carver);
  return scratch;
}

size_t SliceWorkspace(const LongShortPattern& pattern, const LongShortPlan& plan,
                      const ComputeContext& context) {
  const SliceSources sources = SourcesOf(pattern, context, {}, {});
  return Measure(plan.tokens, CallOf(pattern, context, {}, sources), context.isa)
      .total(context.pool->threads());
}

SlicedAttention::SlicedAttention(const LongShortPattern& pattern, const LongShortMap& map,
                                 const ComputeContext& context, const LongShortSliceRows& rows,
                                 const SliceScratch& scratch)
    : pattern_(pattern),
      map_(map),
      context_(context),
      rows_(rows),
      scratch_(scratch),
      class_rows_(ClassRows(pattern), context, scratch.class_rows) {
  std::fill_n(scratch_.pooled, int64_t{2} * pattern.ranks * pattern.width, 0.0f);
}

void SlicedAttention::Weigh() {
  const std::array<int32_t, 2> offsets = {0, static_cast<int32_t>(map_.tokens)};
  const kernels::PoolValue unread;
  for (float* weights : {rows_.weights, rows_.value_weights}) {
    if (weights == nullptr) continue;
    kernels::PoolCall call;
    call.scores = weights;
    call.score_stride = call.columns = pattern_.columns();
    call.columns_per_head = pattern_.ranks;
    call.offsets = offsets;
    call.values = {&unread, 1};
    WeighSegments(call, weights, *context_.pool);
  }
}

void SlicedAttention::Pool(std::byte* qkv, int64_t begin, int64_t count) {
  const std::array<int32_t, 2> offsets = {0, static_cast<int32_t>(count)};
  const int64_t landmarks = int64_t{pattern_.ranks} * pattern_.width;
  for (int part = 0; part < 2; ++part) {
    kernels::PoolValue value;
    value.data = Column(qkv, (1 + part) * pattern_.width, context_.compute);
    value.dtype = SpanType(context_.compute);
    value.row_stride = 3 * pattern_.width;
    value.head_stride = value.width = pattern_.head_dim();
    value.out = scratch_.pooled + part * landmarks;
    kernels::PoolCall call;
    call.columns = pattern_.columns();
    call.columns_per_head = pattern_.ranks;
    call.offsets = offsets;
    call.values = {&value, 1};
    const float* weights =
        part == 1 && rows_.value_weights != nullptr ? rows_.value_weights : rows_.weights;
    AddWeighted(call, weights + begin * pattern_.columns(), *context_.pool);
  }
}

// Rows of the landmarks' source, of pooled keys and values: heads side by side, one norm for all.
void SlicedAttention::EndLandmarks(const Norm* norm) {
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const int64_t width = pattern_.width, ranks = pattern_.ranks;
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* row = scratch_.thread_rows + thread * width;
    for (int64_t i = thread; i < 2 * ranks; i += threads) {
      const int64_t part = i / ranks, landmark = i % ranks;
      JoinLandmark(scratch_.pooled + part * ranks * width,
                   {pattern_.heads, ranks, pattern_.head_dim()}, 0, landmark, row);
      std::byte* to = Column(scratch_.projected, (2 * landmark + part) * width, context_.compute);
      if (norm == nullptr) {
        kernels.narrow(row, width, to);
      } else {
        kernels.norm(row, norm->view(), width, to);
      }
    }
  });
}

// Class rows see their own keys, and every token's output as key and value.
void SlicedAttention::BeginClass() {
  const int64_t width = pattern_.width;
  class_rows_.Begin(rows_.qkv, 3 * width);
  class_rows_.Append({Column(rows_.qkv, width, context_.compute),
                      Column(rows_.qkv, 2 * width, context_.compute), 3 * width,
                      pattern_.class_tokens});
}

void SlicedAttention::Attend(const LongShortSlice& slice, const LongShortPlan& plan,
                             std::span<const kernels::Table> tables) {
  const SliceSources sources = SourcesOf(pattern_, context_, rows_, scratch_);
  kernels::Call call = CallOf(pattern_, context_, rows_, sources);
  // Row g of a slice is the map's token load_begin.
  call.out = Column(rows_.z, slice.load_begin * pattern_.width, context_.compute);
  call.tables = tables;
  RunSpans(context_, plan.tokens, call, rows_.workspace);
  if (pattern_.class_tokens == 0) return;
  const int64_t first = pattern_.class_tokens + slice.begin;
  std::byte* const z = Column(rows_.z, first * pattern_.width, context_.compute);
  class_rows_.Append({z, z, pattern_.width, slice.end - slice.begin});
}

}  // namespace longview::models
