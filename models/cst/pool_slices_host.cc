#include <vector>

#include "models/cst/pool_slices.h"
#include "models/layers/span_rows.h"
#include "models/ops/host_backend.h"

namespace longview::models {

SlicesRef StageSlices(Backend& backend, std::span<const kernels::SliceRows> slices,
                      std::span<const uint8_t> visible) {
  return {backend.List(slices), backend.List(visible), static_cast<int64_t>(slices.size())};
}

PartsRef StageParts(Backend& backend, std::span<const kernels::SlicePart> parts) {
  return {backend.List(parts), static_cast<int64_t>(parts.size())};
}

namespace ops {
namespace {

void PoolPieces(const HostBackend& host, const Rows& from, kernels::SlicePooling pooling,
                const uint8_t* visible, std::span<const kernels::SlicePiece> pieces) {
  kernels::SlicePoolCall call;
  call.pooling = pooling;
  call.rows = from.data;
  call.dtype = SpanType(host.compute());
  call.row_stride = from.stride;
  call.channels = static_cast<int>(from.width);
  call.visible = visible;
  call.pieces = pieces;
  kernels::PoolSlices(call, host.pool());
}

}  // namespace

void PoolSlices::OnHost(HostBackend& host) const {
  const bool narrows = host.compute() != Compute::kFp32;
  Carver scratch = host.Scratch();
  float* const pooled = narrows ? scratch.Take<float>(out.count * out.width) : out.floats();
  if (!host.Runs(scratch)) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  std::vector<kernels::SlicePiece> pieces;
  for (int64_t s = 0; s < slices.count; ++s) {
    const kernels::SliceRows& slice = slices.data[s];
    pieces.push_back({slice.row0, slice.rows, true, slice.visible, pooled + s * out.width});
  }
  PoolPieces(host, from, pooling, slices.visible, pieces);
  if (!narrows) return;
  host.Each(slices.count,
            [&](long s) { host.kernels().narrow(pooled + s * out.width, out.width, out.Row(s)); });
}

void PoolParts::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  std::vector<kernels::SlicePiece> pieces;
  for (int64_t i = 0; i < parts.count; ++i) {
    const kernels::SlicePart& part = parts.data[i];
    pieces.push_back(
        {part.row0, part.rows, part.begins != 0, part.divisor, sums.floats() + i * sums.width});
  }
  PoolPieces(host, from, pooling, nullptr, pieces);
}

}  // namespace ops
}  // namespace longview::models
