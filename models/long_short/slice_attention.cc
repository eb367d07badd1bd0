#include "models/long_short/slice_attention.h"

#include <algorithm>
#include <array>

#include "kernels/pool/pool_parts.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

struct Scratch {
  LongShortBuffers buffers;
  OpenRowsBuffers class_rows;
};

OpenRowsShape ClassRows(const LongShortPattern& pattern) {
  return {pattern.class_tokens, pattern.heads, pattern.width, pattern.scale};
}

Scratch Carve(const LongShortPattern& pattern, const ComputeContext& context, int64_t rows,
              Carver& carver) {
  const int64_t landmarks = int64_t{pattern.ranks} * pattern.width;
  Scratch scratch;
  scratch.buffers.pooled = carver.Take<float>(2 * landmarks);
  scratch.buffers.projected = carver.TakeBytes(2 * landmarks * ElementBytes(context.compute));
  scratch.buffers.thread_rows =
      carver.Take<float>(int64_t{context.pool->threads()} * pattern.width);
  scratch.class_rows = CarveOpenRows(ClassRows(pattern), context, rows, carver);
  return scratch;
}

OpenRowsBuffers CarvedClassRows(const LongShortPattern& pattern, const ComputeContext& context,
                                int64_t rows, std::byte* block) {
  Carver carver(block);
  return Carve(pattern, context, rows, carver).class_rows;
}

}  // namespace

size_t LongShortSliceBytes(const LongShortPattern& pattern, const ComputeContext& context,
                           int64_t rows) {
  Carver carver(nullptr);
  Carve(pattern, context, rows, carver);
  return carver.used();
}

size_t LongShortSliceWorkspace(const LongShortPattern& pattern, const LongShortPlan& plan,
                               const ComputeContext& context) {
  const LongShortBuffers none;
  PlannedCall call(pattern, context, none);
  return Measure(plan.tokens, call.Tokens({}), context.isa).total(context.pool->threads());
}

SlicedAttention::SlicedAttention(const LongShortPattern& pattern, const LongShortMap& map,
                                 const ComputeContext& context, const LongShortSliceRows& rows)
    : pattern_(pattern),
      map_(map),
      context_(context),
      rows_(rows),
      class_rows_(ClassRows(pattern), context,
                  CarvedClassRows(pattern, context, map.rows(pattern), rows.scratch)) {
  Carver carver(rows.scratch);
  buffers_ = Carve(pattern, context, map.rows(pattern), carver).buffers;
  const int64_t landmarks = int64_t{pattern.ranks} * pattern.width;
  std::fill_n(buffers_.pooled, 2 * landmarks, 0.0f);
  buffers_.qkv = rows.qkv;
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
    value.out = buffers_.pooled + part * landmarks;
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

void SlicedAttention::EndLandmarks(const Norm* norm) {
  PlaceLandmarks(pattern_, 1, norm, context_, buffers_);
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
  LongShortBuffers buffers = buffers_;
  // Row g of a slice is the map's token load_begin.
  buffers.z = Column(rows_.z, slice.load_begin * pattern_.width, context_.compute);
  PlannedCall planned(pattern_, context_, buffers);
  RunSpans(context_, plan.tokens, planned.Tokens(tables), rows_.workspace);
  if (pattern_.class_tokens == 0) return;
  const int64_t first = pattern_.class_tokens + slice.begin;
  std::byte* const z = Column(rows_.z, first * pattern_.width, context_.compute);
  class_rows_.Append({z, z, pattern_.width, slice.end - slice.begin});
}

}  // namespace longview::models
