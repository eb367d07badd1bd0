// Long-short attention's operations on a device.
#include <vector>

#include "kernels/cuda/pool/pool_pieces.h"
#include "models/layers/span_rows.h"
#include "models/ops/device_ops.h"

namespace longview::models {
namespace {

using kernels::cuda::PoolPiecePlan;

PoolPiecePlan PiecesOf(std::span<const int32_t> offsets) {
  std::vector<kernels::cuda::PoolSegment> segments;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) segments.push_back({offsets[s], offsets[s + 1]});
  return kernels::cuda::CutPieces(segments);
}

// Scratch of one call.
struct DeviceLandmarkBuffers {
  kernels::cuda::PoolSums sums = {};  // Per piece and column.
  float* keys = nullptr;              // [segments, columns, d / heads]
  float* values = nullptr;            // The same.
};

DeviceLandmarkBuffers Carve(const LandmarkArgs& args, int64_t pieces, Carver& carver) {
  const int64_t states = pieces * args.columns(), dim = args.width() / args.heads;
  const int64_t pooled = args.sequences() * args.columns() * dim;
  DeviceLandmarkBuffers buffers;
  buffers.sums.m = carver.Take<float>(states);
  buffers.sums.s = carver.Take<float>(states);
  buffers.sums.sums = carver.Take<float>(states * dim);
  buffers.keys = carver.Take<float>(pooled);
  buffers.values = carver.Take<float>(pooled);
  return buffers;
}

}  // namespace

LongShortRows TakeLongShortOnDevice(Ops& ops, int64_t count, int64_t width, int64_t columns) {
  const Rows all = ops.Take(count, 3 * width + columns, RowType::kCompute, Ops::Tail::kPanel);
  LongShortRows rows;
  rows.q = all.Columns(0, width);
  rows.own_keys = all.Columns(width, width);
  rows.own_values = all.Columns(2 * width, width);
  rows.keys = ops.Take(count, width, RowType::kCompute, Ops::Tail::kPanel);
  rows.values = ops.Take(count, width, RowType::kCompute);
  rows.scores = ops.Take(count, columns, RowType::kFloat);
  return rows;
}

SegmentsRef DeviceOps::Stage(std::span<const int32_t> offsets, std::span<const uint8_t> visible) {
  const PoolPiecePlan cut = PiecesOf(offsets);
  segments_.push_back({lists_->Add(cut.pieces), lists_->Add(cut.piece0), lists_->Add(visible),
                       static_cast<int32_t>(cut.pieces.size())});
  return {offsets, visible.data(), static_cast<int>(segments_.size()) - 1};
}

// Rows behind the normalised ones get normalised keys and scores too, which nobody reads.
void DeviceOps::ProjectLongShort(const Weight& weight, const NormWeight& norm, const Rows& in,
                                 int64_t, const LongShortRows& out) {
  Timed(&EncoderTimes::linears, [&] {
    Multiply(weight, in, out.q.data);
    const kernels::cuda::ProjectedRows rows = {out.q.data,
                                               weight.device.bias,
                                               norm.device.view(),
                                               out.keys.data,
                                               out.values.data,
                                               out.scores.floats(),
                                               in.count,
                                               static_cast<int32_t>(out.q.width),
                                               static_cast<int32_t>(out.scores.width),
                                               SpanType(compute())};
    device_.Check(device_.api().token.project(device_.stream(), rows), "keys and values");
  });
}

void DeviceOps::Landmarks(const LandmarkArgs& args) {
  Timed(&EncoderTimes::attention, [&] {
    const StagedSegments& segments = segments_[static_cast<size_t>(args.segments.staged)];
    Carver carver(scratch_);
    const DeviceLandmarkBuffers buffers = Carve(args, segments.count, carver);
    const auto columns = static_cast<int32_t>(args.columns());
    const auto dim = static_cast<int32_t>(args.width() / args.heads);
    const auto sequences = static_cast<int32_t>(args.sequences());
    for (int part = 0; part < 2 && args.rank > 0; ++part) {
      const Rows& rows = part == 0 ? args.from.keys : args.from.values;
      const Rows& scores = part == 1 && args.value_scores ? args.value_scores : args.from.scores;
      float* const out = part == 0 ? buffers.keys : buffers.values;
      const kernels::cuda::PoolPieces pieces = {
          {scores.floats(), columns, columns, args.rank, segments.visible},
          {rows.data, rows.stride, dim, dim, SpanType(compute())},
          segments.pieces,
          segments.count,
          buffers.sums};
      device_.Check(device_.api().pool.pieces(device_.stream(), pieces), "pooling");
      const kernels::cuda::PoolMerge merge = {
          buffers.sums, segments.piece0, sequences, columns, dim, out};
      device_.Check(device_.api().pool.merge(device_.stream(), merge), "merging pools");
    }
    const int64_t own = args.segments.offsets.back();
    const kernels::cuda::LandmarkRows landmarks = {
        buffers.keys,
        buffers.values,
        args.own_rows ? args.from.own_keys.Row(own) : nullptr,
        args.own_rows ? args.from.own_values.Row(own) : nullptr,
        args.from.own_keys.stride,
        args.norm != nullptr ? args.norm->device.view() : kernels::cuda::RowNorm{},
        args.out.data,
        sequences,
        args.rank,
        args.heads,
        dim,
        SpanType(compute())};
    device_.Check(device_.api().encoder.landmarks(device_.stream(), landmarks), "landmarks");
  });
}

size_t DeviceCount::LandmarkScratch(const LandmarkArgs& args) const {
  Carver carver(nullptr);
  Carve(args, static_cast<int64_t>(PiecesOf(args.segments.offsets).pieces.size()), carver);
  return carver.used();
}

size_t DeviceCount::SegmentBytes(std::span<const int32_t> offsets,
                                 std::span<const uint8_t> visible) const {
  const PoolPiecePlan cut = PiecesOf(offsets);
  return ListBytes(cut.pieces.size() * sizeof(cut.pieces[0])) +
         ListBytes(cut.piece0.size() * sizeof(int32_t)) + ListBytes(visible.size_bytes());
}

}  // namespace longview::models
