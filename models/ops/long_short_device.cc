#include <vector>

#include "kernels/cuda/pool/pool_pieces.h"
#include "models/ops/device_backend.h"
#include "models/ops/long_short.h"

namespace longview::models {
namespace {

kernels::cuda::PoolPiecePlan PiecesOf(std::span<const int32_t> offsets) {
  std::vector<kernels::cuda::PoolSegment> segments;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) segments.push_back({offsets[s], offsets[s + 1]});
  return kernels::cuda::CutPieces(segments);
}

}  // namespace

Segments StageSegments(Backend& backend, std::span<const int32_t> offsets,
                       std::span<const uint8_t> visible) {
  Segments segments;
  segments.offsets = offsets;
  if (backend.on_device()) {
    const kernels::cuda::PoolPiecePlan cut = PiecesOf(offsets);
    segments.pieces = backend.List(cut.pieces);
    segments.piece0 = backend.List(cut.piece0);
    segments.piece_count = static_cast<int32_t>(cut.pieces.size());
  }
  segments.visible = backend.List(visible);
  return segments;
}

namespace ops {
namespace {

// Scratch of one call.
struct DeviceLandmarkBuffers {
  kernels::cuda::PoolSums sums = {};  // Per piece and column.
  float* keys = nullptr;              // [segments, columns, d / heads]
  float* values = nullptr;            // [segments, columns, d / heads]
};

DeviceLandmarkBuffers Carve(const Landmarks& args, int64_t pieces, Carver& carver) {
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

void MakeLandmarks(DeviceBackend& device, const Landmarks& args,
                   const DeviceLandmarkBuffers& buffers) {
  const Segments& segments = *args.segments;
  const auto columns = static_cast<int32_t>(args.columns());
  const auto dim = static_cast<int32_t>(args.width() / args.heads);
  const auto sequences = static_cast<int32_t>(args.sequences());
  for (int part = 0; part < 2 && args.rank > 0; ++part) {
    const Rows& rows = part == 0 ? args.from.keys : args.from.values;
    const Rows& scores = part == 1 && args.value_scores ? args.value_scores : args.from.scores;
    float* const out = part == 0 ? buffers.keys : buffers.values;
    const kernels::cuda::PoolPieces pieces = {
        {scores.floats(), columns, columns, args.rank, segments.visible},
        {rows.data, rows.stride, dim, dim, device.type()},
        segments.pieces,
        segments.piece_count,
        buffers.sums};
    device.Check(device.api().pool.pieces(device.stream(), pieces), "pooling");
    const kernels::cuda::PoolMerge merge = {buffers.sums, segments.piece0, sequences, columns, dim,
                                            out};
    device.Check(device.api().pool.merge(device.stream(), merge), "merging pools");
  }
  const int64_t own = args.segments->offsets.back();
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
      device.type()};
  device.Check(device.api().encoder.landmarks(device.stream(), landmarks), "landmarks");
}

}  // namespace

// Rows behind the normalised ones get normalised keys and scores too, which nobody reads.
void ProjectLongShort::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::linears, [&] {
    device.Multiply(weight, in, out.q.data);
    const kernels::cuda::ProjectedRows rows = {out.q.data,
                                               weight.device.bias,
                                               norm.device.view(),
                                               out.keys.data,
                                               out.values.data,
                                               out.scores.floats(),
                                               in.count,
                                               static_cast<int32_t>(out.q.width),
                                               static_cast<int32_t>(out.scores.width),
                                               device.type()};
    device.Check(device.api().token.project(device.stream(), rows), "keys and values");
  });
}

void Landmarks::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  const DeviceLandmarkBuffers buffers = Carve(*this, segments->piece_count, scratch);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::attention, [&] { MakeLandmarks(device, *this, buffers); });
}

}  // namespace ops
}  // namespace longview::models
