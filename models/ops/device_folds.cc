// Folded global rows on a device: the sequences that have equally many of them go together.
#include <algorithm>
#include <cmath>

#include "kernels/cuda/pool/pool_pieces.h"
#include "models/layers/span_rows.h"
#include "models/ops/device_ops.h"

namespace longview::models {
namespace {

// Groups [begin, end) have as many global rows each.
struct Run {
  size_t begin = 0, end = 0;
  kernels::cuda::PoolPiecePlan pieces;
  std::vector<int32_t> begins, ends;  // Rows of each sequence.
  int32_t longest = 0;
};

std::vector<Run> RunsOf(std::span<const FoldGroup> groups) {
  std::vector<Run> runs;
  for (size_t begin = 0; begin < groups.size(); begin = runs.back().end) {
    Run& run = runs.emplace_back();
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
  std::byte* projected = nullptr;     // The same.
  float* queries = nullptr;           // [global rows, width]
  float* vectors = nullptr;           // [sequences * columns, width]
  float* scores = nullptr;            // [rows of x, columns]
  float* means = nullptr;             // [sequences * columns, width]
  kernels::cuda::PoolSums sums = {};  // Per piece and column.
};

DeviceFoldBuffers Carve(const FoldedArgs& args, Compute compute, int64_t sequences, int64_t count,
                        int64_t pieces, Carver& carver) {
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

FoldsRef DeviceOps::Stage(std::span<const FoldGroup> groups, std::span<const int32_t> rows,
                          std::span<const int32_t> outs, std::span<const uint8_t> visible) {
  FoldsRef folds;
  folds.groups = groups;
  folds.rows = Stage(rows);
  folds.outs = Stage(outs);
  folds.visible = lists_->Add(visible);
  folds.staged = static_cast<int>(folds_.size());
  std::vector<StagedFold>& staged = folds_.emplace_back();
  for (const Run& run : RunsOf(groups)) {
    staged.push_back({lists_->Add(run.begins), lists_->Add(run.ends),
                      lists_->Add(run.pieces.pieces), lists_->Add(run.pieces.piece0),
                      static_cast<int32_t>(run.begin), static_cast<int32_t>(run.end - run.begin),
                      static_cast<int32_t>(run.pieces.pieces.size()), run.longest});
  }
  return folds;
}

void DeviceOps::AttendFolded(const FoldedArgs& args) {
  if (args.folds.groups.empty()) return;
  for (const StagedFold& fold : folds_[static_cast<size_t>(args.folds.staged)]) {
    Timed(&EncoderTimes::attention, [&] { AttendFold(args, fold); });
  }
}

void DeviceOps::AttendFold(const FoldedArgs& args, const StagedFold& fold) const {
  const kernels::cuda::RowsApi& api = device_.api().rows;
  kernels::cuda::Stream* const stream = device_.stream();
  const FoldGroup& first = args.folds.groups[static_cast<size_t>(fold.first)];
  const auto width = static_cast<int32_t>(args.width());
  const int32_t columns = first.count * args.heads, rows = fold.sequences * first.count;
  const kernels::cuda::FoldShape shape = {fold.sequences, first.count, args.heads,
                                          width / args.heads, width};
  Carver carver(scratch_);
  const DeviceFoldBuffers b =
      Carve(args, compute(), fold.sequences, first.count, fold.pieces, carver);
  const int64_t bytes = args.input.row_bytes();
  device_.Check(api.copy(stream, {args.input.data, b.gathered, args.folds.rows.data + first.first,
                                  nullptr, rows, static_cast<int32_t>(bytes), bytes, bytes}),
                "global rows");
  MultiplyRows(device_, args.query->device, b.gathered, rows, b.projected);
  device_.Check(api.widen(stream, {b.projected, args.query->device.bias, b.queries, rows, width,
                                   SpanType(compute())}),
                "global queries");
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.dim));
  device_.Check(api.fold_keys(stream, {shape, b.queries, args.keys->device, scale, b.vectors}),
                "folded keys");
  device_.Check(api.fold_scores(stream, {shape, args.x.floats(), b.vectors, fold.begins, fold.ends,
                                         fold.longest, b.scores}),
                "folded scores");
  const kernels::cuda::PoolPieces pieces = {
      {b.scores, columns, columns, columns, args.folds.visible},
      {args.x.data, width, 0, width, kernels::DType::kFloat32},
      fold.piece_list,
      fold.pieces,
      b.sums};
  device_.Check(device_.api().pool.pieces(stream, pieces), "pooling");
  const kernels::cuda::PoolMerge merge = {b.sums,  fold.piece0, fold.sequences,
                                          columns, width,       b.means};
  device_.Check(device_.api().pool.merge(stream, merge), "merging pools");
  const kernels::cuda::FoldValues values = {shape,
                                            b.means,
                                            args.values->device,
                                            args.key_value->device.bias + width,
                                            args.folds.outs.data + first.first,
                                            args.out.data,
                                            SpanType(compute())};
  device_.Check(api.fold_values(stream, values), "folded values");
}

size_t DeviceCount::FoldedScratch(const FoldedArgs& args) const {
  size_t most = 0;
  for (const Run& run : RunsOf(args.folds.groups)) {
    Carver carver(nullptr);
    Carve(args, compute(), static_cast<int64_t>(run.end - run.begin),
          args.folds.groups[run.begin].count, static_cast<int64_t>(run.pieces.pieces.size()),
          carver);
    most = std::max(most, carver.used());
  }
  return most;
}

size_t DeviceCount::FoldBytes(std::span<const FoldGroup> groups,
                              std::span<const uint8_t> visible) const {
  size_t bytes = ListBytes(visible.size_bytes());
  for (const Run& run : RunsOf(groups)) {
    bytes += 2 * ListBytes(run.begins.size() * sizeof(int32_t)) +
             ListBytes(run.pieces.pieces.size() * sizeof(run.pieces.pieces[0])) +
             ListBytes(run.pieces.piece0.size() * sizeof(int32_t));
  }
  return bytes;
}

}  // namespace longview::models
