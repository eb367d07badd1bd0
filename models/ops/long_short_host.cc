#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/layers/landmark_row.h"
#include "models/layers/span_rows.h"
#include "models/ops/host_backend.h"
#include "models/ops/long_short.h"
#include "models/ops/project.h"

namespace longview::models {

LongShortRows TakeLongShort(Backend& backend, int64_t count, int64_t width, int64_t columns,
                            bool beside) {
  using enum RowType;
  using enum Backend::Tail;
  LongShortRows rows;
  if (backend.on_device()) {
    // Projections stay as they are; normalised keys and values have memory of their own.
    const Rows all = backend.Take(count, 3 * width + columns, kCompute, kPanel);
    rows.q = all.Columns(0, width);
    rows.own_keys = all.Columns(width, width);
    rows.own_values = all.Columns(2 * width, width);
    rows.keys = backend.Take(count, width, kCompute, kPanel);
    rows.values = backend.Take(count, width, kCompute);
  } else {
    // Keys and values lie beside their queries as projected, and in their place or in rows of their
    // own normalised.
    const Rows qkv = backend.Take(count, 3 * width, kCompute);
    rows.q = qkv.Columns(0, width);
    rows.keys = rows.own_keys = qkv.Columns(width, width);
    rows.values = rows.own_values = qkv.Columns(2 * width, width);
    if (beside) {
      rows.keys = backend.Take(count, width, kCompute);
      rows.values = backend.Take(count, width, kCompute);
    }
  }
  rows.scores = backend.Take(count, columns, kFloat);
  return rows;
}

namespace ops {
namespace {

// Scratch of one call.
struct HostLandmarkBuffers {
  float* keys = nullptr;    // [segments, columns, d / heads]
  float* values = nullptr;  // [segments, columns, d / heads]
  float* rows = nullptr;    // [threads, d]
  std::byte* workspace = nullptr;
};

kernels::PoolCall PoolCallOf(const Landmarks& args, Compute compute,
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
  call.visible = args.segments->visible;
  call.offsets = args.segments->offsets;
  call.values = values;
  return call;
}

HostLandmarkBuffers Carve(const Landmarks& args, int threads, Compute compute, Carver& carver) {
  const int64_t pooled = args.sequences() * args.rank * args.width();
  HostLandmarkBuffers buffers;
  buffers.keys = carver.Take<float>(pooled);
  buffers.values = carver.Take<float>(pooled);
  buffers.rows = carver.Take<float>(args.width() * threads);
  std::vector<kernels::PoolValue> values;
  const size_t bytes =
      args.rank == 0 ? 0 : MeasurePool(PoolCallOf(args, compute, buffers, values)).total(threads);
  buffers.workspace = carver.TakeBytes(bytes);
  return buffers;
}

void MakeLandmarks(HostBackend& host, const Landmarks& args, const HostLandmarkBuffers& buffers) {
  if (args.rank > 0) {
    std::vector<kernels::PoolValue> values;
    kernels::PoolCall call = PoolCallOf(args, host.compute(), buffers, values);
    const auto pool = [&] {
      PoolSegments(call, kernels::CarveWorkspace(buffers.workspace, MeasurePool(call)),
                   host.pool());
    };
    // A pooling has one set of weights: keys and values with different ones take two.
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
  const float* zeros = host.Zeros(width);
  const auto place = [&](int64_t row, const Rows& own, const float* pooled, float* scratch,
                         std::byte* to) {
    const int64_t segment = row / landmarks, landmark = row % landmarks - (args.own_rows ? 1 : 0);
    if (landmark < 0) {
      const std::byte* from = own.Row(args.segments->offsets.back() + segment);
      host.kernels().bias_widen(from, zeros, width, scratch);
    } else {
      JoinLandmark(pooled, shape, segment, landmark, scratch);
    }
    if (args.norm == nullptr) {
      host.kernels().narrow(scratch, width, to);
    } else {
      host.kernels().residual_prenorm(scratch, nullptr, zeros, args.norm->host.view(), width, to);
    }
  };
  const int64_t rows = args.sequences() * landmarks;
  const int threads = host.threads();
  kernels::RunOnThreads(host.pool(), [&](int thread) {
    float* scratch = buffers.rows + width * thread;
    for (int64_t row = rows * thread / threads; row < rows * (thread + 1) / threads; ++row) {
      std::byte* to = args.out.Row(row);
      place(row, args.from.own_keys, buffers.keys, scratch, to);
      place(row, args.from.own_values, buffers.values, scratch, to + args.from.q.row_bytes());
    }
  });
}

}  // namespace

OpWork ProjectLongShort::Work() const { return ProductWork(weight, in); }

OpWork Landmarks::Work() const {
  const double rows = segments->offsets.back();
  return {.attention = 2 * rows * static_cast<double>(rank) * static_cast<double>(width())};
}

void ProjectLongShort::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  std::byte* const products = host.TakeProducts(weight, in, scratch);
  if (!host.Runs(scratch)) return;
  const float* bias = weight.host->bias.data();
  const int64_t width = out.q.width, bytes = out.q.row_bytes(), columns = out.scores.width;
  const bool beside = out.keys.data != out.own_keys.data;
  host.Multiply(weight, in, products, [&](int64_t row, std::byte* y) {
    host.kernels().bias_copy(y, bias, row >= normed || beside ? 3 * width : width, out.q.Row(row));
    if (row >= normed) return;
    host.kernels().bias_norm(y + bytes, bias + width, norm.host.view(), width, out.keys.Row(row));
    host.kernels().bias_norm(y + 2 * bytes, bias + 2 * width, norm.host.view(), width,
                             out.values.Row(row));
    host.kernels().bias_widen(y + 3 * bytes, bias + 3 * width, columns,
                              out.scores.floats() + row * columns);
  });
}

void Landmarks::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  const HostLandmarkBuffers buffers = Carve(*this, host.threads(), host.compute(), scratch);
  if (!host.Runs(scratch)) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  MakeLandmarks(host, *this, buffers);
}

}  // namespace ops
}  // namespace longview::models
