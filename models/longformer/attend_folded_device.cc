#include <algorithm>
#include <cmath>

#include "kernels/cuda/pool/pool_pieces.h"
#include "models/longformer/attend_folded.h"
#include "models/ops/device_backend.h"

namespace longview::models {
namespace {

// Groups [begin, end) have as many global rows each.
struct FoldRun {
  size_t begin = 0, end = 0;
  kernels::cuda::PoolPiecePlan pieces;
  std::vector<int32_t> begins, ends;  // Rows of each sequence.
  int32_t longest = 0;
};

std::vector<FoldRun> FoldRunsOf(std::span<const FoldGroup> groups) {
  std::vector<FoldRun> runs;
  for (size_t begin = 0; begin < groups.size(); begin = runs.back().end) {
    FoldRun& run = runs.emplace_back();
    run.begin = run.end = begin;
    std::vector<kernels::cuda::PoolSegment> segments;
    for (; run.end < groups.size() && groups[run.end].count == groups[begin].count; ++run.end) {
      const FoldGroup& group = groups[run.end];
      segments.push_back({group.row0, group.row0 + group.tokens});
      run.begins.push_back(segments.back().begin);
      run.ends.push_back(segments.back().end);
      run.longest = std::max(run.longest, group.tokens);
    }
    run.pieces = kernels::cuda::CutPieces(segments);
  }
  return runs;
}

// Scratch of one run.
struct DeviceFoldBuffers {
  std::byte* gathered = nullptr;      // T [global rows, width], with a panel's tail.
  std::byte* projected = nullptr;     // T [global rows, width], with a panel's tail.
  float* queries = nullptr;           // [global rows, width]
  float* vectors = nullptr;           // [sequences * columns, width]
  float* scores = nullptr;            // [rows of x, columns]
  float* means = nullptr;             // [sequences * columns, width]
  kernels::cuda::PoolSums sums = {};  // Per piece and column.
};

DeviceFoldBuffers Carve(const ops::AttendFolded& args, Compute compute, int64_t sequences,
                        int64_t count, int64_t pieces, Carver& carver) {
  const int64_t width = args.width(), columns = count * args.heads;
  const auto panels =
      static_cast<size_t>((sequences * count + kDevicePanelTail) * width * ElementBytes(compute));
  DeviceFoldBuffers buffers;
  buffers.gathered = carver.TakeBytes(panels);
  buffers.projected = carver.TakeBytes(panels);
  buffers.queries = carver.Take<float>(sequences * count * width);
  buffers.vectors = carver.Take<float>(sequences * columns * width);
  buffers.scores = carver.Take<float>(args.x.count * columns);
  buffers.means = carver.Take<float>(sequences * columns * width);
  buffers.sums.m = carver.Take<float>(pieces * columns);
  buffers.sums.s = carver.Take<float>(pieces * columns);
  buffers.sums.sums = carver.Take<float>(pieces * columns * width);
  return buffers;
}

}  // namespace

Folds StageFolds(Backend& backend, std::span<const FoldGroup> groups, std::span<const int32_t> rows,
                 std::span<const int32_t> outs, std::span<const uint8_t> visible) {
  Folds folds;
  folds.groups = groups;
  folds.rows = backend.Stage(rows);
  folds.outs = backend.Stage(outs);
  folds.visible = backend.List(visible);
  if (!backend.on_device()) return folds;
  for (const FoldRun& run : FoldRunsOf(groups)) {
    DeviceFold& fold = folds.device.emplace_back();
    fold.begins = backend.List(run.begins);
    fold.ends = backend.List(run.ends);
    fold.pieces = backend.List(run.pieces.pieces);
    fold.piece0 = backend.List(run.pieces.piece0);
    fold.first = static_cast<int32_t>(run.begin);
    fold.sequences = static_cast<int32_t>(run.end - run.begin);
    fold.piece_count = static_cast<int32_t>(run.pieces.pieces.size());
    fold.longest = run.longest;
  }
  return folds;
}

namespace ops {
namespace {

void AttendFold(const DeviceBackend& device, const AttendFolded& args, const DeviceFold& fold,
                const DeviceFoldBuffers& b) {
  const kernels::cuda::RowsApi& api = device.api().rows;
  kernels::cuda::Stream* const stream = device.stream();
  const FoldGroup& first = args.folds.groups[static_cast<size_t>(fold.first)];
  const auto width = static_cast<int32_t>(args.width());
  const int32_t columns = first.count * args.heads, rows = fold.sequences * first.count;
  const kernels::cuda::FoldShape shape = {fold.sequences, first.count, args.heads,
                                          width / args.heads, width};
  const int64_t bytes = args.input.row_bytes();
  device.Check(api.copy(stream, {args.input.data, b.gathered, args.folds.rows.data + first.first,
                                 nullptr, rows, static_cast<int32_t>(bytes), bytes, bytes}),
               "global rows");
  MultiplyRows(device.device(), args.query.device, b.gathered, rows, b.projected);
  device.Check(api.widen(stream, {b.projected, args.query.device.bias, b.queries, rows, width,
                                  device.type()}),
               "global queries");
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.dim));
  // Query times key weight is one vector per head and global row, so no key is projected.
  device.Check(api.fold_keys(stream, {shape, b.queries, args.keys.device, scale, b.vectors}),
               "folded keys");
  device.Check(api.fold_scores(stream, {shape, args.x.floats(), b.vectors, fold.begins, fold.ends,
                                        fold.longest, b.scores}),
               "folded scores");
  const kernels::cuda::PoolPieces pieces = {
      {b.scores, columns, columns, columns, args.folds.visible},
      {args.x.data, width, 0, width, kernels::DType::kFloat32},
      fold.pieces,
      fold.piece_count,
      b.sums};
  device.Check(device.api().pool.pieces(stream, pieces), "pooling");
  const kernels::cuda::PoolMerge merge = {b.sums,  fold.piece0, fold.sequences,
                                          columns, width,       b.means};
  device.Check(device.api().pool.merge(stream, merge), "merging pools");
  const kernels::cuda::FoldValues values = {shape,
                                            b.means,
                                            args.values.device,
                                            args.key_value.device.bias + width,
                                            args.folds.outs.data + first.first,
                                            args.out.data,
                                            device.type()};
  device.Check(api.fold_values(stream, values), "folded values");
}

}  // namespace

void AttendFolded::OnDevice(DeviceBackend& device) const {
  for (const DeviceFold& fold : folds.device) {
    Carver scratch = device.Scratch();
    const FoldGroup& first = folds.groups[static_cast<size_t>(fold.first)];
    const DeviceFoldBuffers buffers =
        Carve(*this, device.compute(), fold.sequences, first.count, fold.piece_count, scratch);
    if (!device.Runs(scratch)) continue;
    device.Timed(&RunTimes::attention, [&] { AttendFold(device, *this, fold, buffers); });
  }
}

}  // namespace ops
}  // namespace longview::models
