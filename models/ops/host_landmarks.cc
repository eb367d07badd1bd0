// Long-short attention's operations on the host.
#include <algorithm>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/layers/landmark_row.h"
#include "models/layers/panels.h"
#include "models/layers/span_rows.h"
#include "models/ops/host_ops.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// Scratch of one call.
struct HostLandmarkBuffers {
  float* keys = nullptr;    // [segments, columns, d / heads]
  float* values = nullptr;  // The same.
  float* rows = nullptr;    // [threads, d]
  std::byte* workspace = nullptr;
};

kernels::PoolCall PoolCallOf(const LandmarkArgs& args, Compute compute,
                             const HostLandmarkBuffers& buffers,
                             std::vector<kernels::PoolValue>& values) {
  values.clear();
  const std::pair<Rows, float*> both[] = {{args.from.keys, buffers.keys},
                                          {args.from.values, buffers.values}};
  for (const auto& [rows, out] : both) {
    kernels::PoolValue& value = values.emplace_back();
    value.data = rows.data;
    value.dtype = SpanType(compute);
    value.row_stride = rows.stride;
    value.head_stride = value.width = static_cast<int>(rows.width / args.heads);
    value.out = out;
  }
  kernels::PoolCall call;
  call.scores = args.from.scores.floats();
  call.score_stride = args.columns();
  call.columns = static_cast<int>(args.columns());
  call.columns_per_head = std::max(args.rank, 1);
  call.visible = args.segments.visible;
  call.offsets = args.segments.offsets;
  call.values = values;
  return call;
}

HostLandmarkBuffers Carve(const LandmarkArgs& args, const ComputeContext& context, Carver& carver) {
  const int64_t pooled = args.sequences() * args.rank * args.width();
  HostLandmarkBuffers buffers;
  buffers.keys = carver.Take<float>(pooled);
  buffers.values = carver.Take<float>(pooled);
  buffers.rows = carver.Take<float>(args.width() * context.pool->threads());
  std::vector<kernels::PoolValue> values;
  const size_t bytes = args.rank == 0
                           ? 0
                           : MeasurePool(PoolCallOf(args, context.compute, buffers, values))
                                 .total(context.pool->threads());
  buffers.workspace = carver.TakeBytes(bytes);
  return buffers;
}

}  // namespace

LongShortRows TakeLongShortOnHost(Ops& ops, int64_t count, int64_t width, int64_t columns,
                                  bool beside) {
  const Rows qkv = ops.Take(count, 3 * width, RowType::kCompute);
  LongShortRows rows;
  rows.q = qkv.Columns(0, width);
  rows.keys = rows.own_keys = qkv.Columns(width, width);
  rows.values = rows.own_values = qkv.Columns(2 * width, width);
  if (beside) {
    rows.keys = ops.Take(count, width, RowType::kCompute);
    rows.values = ops.Take(count, width, RowType::kCompute);
  }
  rows.scores = ops.Take(count, columns, RowType::kFloat);
  return rows;
}

void HostOps::ProjectLongShort(const Weight& weight, const NormWeight& norm, const Rows& in,
                               int64_t normed, const LongShortRows& out) {
  const float* bias = weight.host->bias.data();
  const int64_t width = out.q.width, bytes = out.q.row_bytes(), columns = out.scores.width;
  const bool beside = out.keys.data != out.own_keys.data;
  Multiply(weight, in, [&](int64_t row, std::byte* y) {
    kernels_.bias_copy(y, bias, row >= normed || beside ? 3 * width : width, out.q.Row(row));
    if (row >= normed) return;
    kernels_.bias_norm(y + bytes, bias + width, norm.host.view(), width, out.keys.Row(row));
    kernels_.bias_norm(y + 2 * bytes, bias + 2 * width, norm.host.view(), width,
                       out.values.Row(row));
    kernels_.bias_widen(y + 3 * bytes, bias + 3 * width, columns,
                        out.scores.floats() + row * columns);
  });
}

void HostOps::Landmarks(const LandmarkArgs& args) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  Carver carver(scratch_);
  const HostLandmarkBuffers buffers = Carve(args, context_, carver);
  if (args.rank > 0) {
    std::vector<kernels::PoolValue> values;
    kernels::PoolCall call = PoolCallOf(args, context_.compute, buffers, values);
    const auto pool = [&] {
      PoolSegments(call, kernels::CarveWorkspace(buffers.workspace, MeasurePool(call)),
                   *context_.pool);
    };
    if (args.value_scores) {
      call.values = std::span(values).first(1);
      pool();
      call.scores = args.value_scores.floats();
      call.values = std::span(values).last(1);
    }
    pool();
  }
  const int64_t width = args.width(), landmarks = args.landmarks();
  const LandmarkShape shape = {args.heads, args.rank, width / args.heads};
  const float* zeros = Zeros(width);
  const auto place = [&](int64_t row, const Rows& own, const float* pooled, float* scratch,
                         std::byte* to) {
    const int64_t segment = row / landmarks, landmark = row % landmarks - (args.own_rows ? 1 : 0);
    if (landmark < 0) {
      const std::byte* from = own.Row(args.segments.offsets.back() + segment);
      kernels_.bias_widen(from, zeros, width, scratch);
    } else {
      JoinLandmark(pooled, shape, segment, landmark, scratch);
    }
    if (args.norm == nullptr) {
      kernels_.narrow(scratch, width, to);
    } else {
      kernels_.residual_prenorm(scratch, nullptr, zeros, args.norm->host.view(), width, to);
    }
  };
  const int64_t rows = args.sequences() * landmarks;
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* scratch = buffers.rows + width * thread;
    for (int64_t row = rows * thread / threads; row < rows * (thread + 1) / threads; ++row) {
      std::byte* to = args.out.Row(row);
      place(row, args.from.own_keys, buffers.keys, scratch, to);
      place(row, args.from.own_values, buffers.values, scratch, to + args.from.q.row_bytes());
    }
  });
}

size_t HostCount::LandmarkScratch(const LandmarkArgs& args) const {
  Carver carver(nullptr);
  Carve(args, context_, carver);
  return carver.used();
}

}  // namespace longview::models
