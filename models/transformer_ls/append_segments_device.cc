#include <algorithm>
#include <vector>

#include "kernels/cuda/decoder_rows/token_api.h"
#include "kernels/cuda/device_blocks.h"
#include "models/ops/device_backend.h"
#include "models/transformer_ls/append_segments.h"

namespace longview::models {

using kernels::cuda::PoolRun;
using kernels::cuda::StateShift;

// A segment that was begun before, or will go on, has its sums in the cache; those of the others
// are scratch.
PiecesRef StagePieces(Backend& backend, const kernels::ProjectionCache* cache,
                      std::span<const SegmentPiece> pieces) {
  const int64_t closing = std::count_if(pieces.begin(), pieces.end(),
                                        [](const SegmentPiece& piece) { return piece.closes; });
  if (!backend.on_device()) return {pieces, closing, nullptr};
  DeviceBackend& device = *backend.device();
  std::vector<PoolRun> runs;
  if (device.counts()) {
    runs.resize(pieces.size());
    return {pieces, closing, backend.List(runs)};
  }
  const kernels::CacheShape& shape = cache->shape();
  const size_t bytes =
      kernels::AlignUp(kernels::PoolStateBytes(shape.pool_columns, shape.pool_widths));
  Carver scratch = device.Scratch();
  for (const bool closes : {true, false}) {
    for (const SegmentPiece& piece : pieces) {
      if (piece.closes != closes) continue;
      const bool cached = piece.resumes || !piece.closes;
      std::byte* state =
          cached ? cache->StateAddress(*piece.sequence, 0) : scratch.TakeBytes(bytes);
      runs.push_back({reinterpret_cast<float*>(state), piece.begin, piece.end,
                      piece.resumes ? 0 : 1, cached ? 1 : 0});
    }
  }
  device.lists().Note(closing);
  return {pieces, closing, backend.List(runs)};
}

namespace ops {
namespace {

void SumPieces(const DeviceBackend& device, const AppendSegments& args, int64_t first,
               int64_t count) {
  if (count == 0) return;
  const int32_t columns = args.columns(), dim = args.dim();
  kernels::cuda::PoolAppend append = {
      {args.from.scores.floats(), columns, columns, args.rank, nullptr},
      {args.from.own_keys.data, args.from.own_keys.stride, dim, dim, device.type()},
      args.from.own_values.data,
      args.pieces.device + first,
      static_cast<int32_t>(count),
      StateShift(args.strip.cache->shape(), args.strip.layer),
      args.state_columns(),
      /*column0=*/0};
  device.Check(device.api().pool.append(device.stream(), append), "sums of segments");
  if (!args.hidden) return;
  append.rows = {args.hidden.data, args.hidden.stride, dim, dim, kernels::DType::kFloat32};
  append.second = nullptr;
  append.column0 = columns;
  device.Check(device.api().pool.append(device.stream(), append), "sums of segments");
}

void Append(const DeviceBackend& device, const AppendSegments& args) {
  // A sequence may end a segment and begin another.
  const int64_t closing = args.pieces.closing;
  SumPieces(device, args, 0, closing);
  if (closing > 0) {
    kernels::cuda::SegmentSums sums = {args.pieces.device,
                                       StateShift(args.strip.cache->shape(), args.strip.layer),
                                       args.state_columns(),
                                       /*column0=*/0,
                                       static_cast<int32_t>(closing),
                                       args.rank};
    const kernels::cuda::PageRows pages = {
        sums, args.places.device,
        kernels::cuda::RowsOf(*args.strip.cache, args.strip.strip, args.strip.layer),
        args.norm.device.view(), device.type()};
    device.Check(device.api().token.pages(device.stream(), pages), "projected segments");
    if (args.hidden) {
      sums.column0 = args.columns();
      const kernels::cuda::SegmentMeans means = {
          sums,       args.places.device, args.hidden_means.data, args.strip.heads,
          args.dim(), device.type()};
      device.Check(device.api().token.means(device.stream(), means), "means of segments");
    }
  }
  SumPieces(device, args, closing, std::ssize(args.pieces.pieces) - closing);
}

}  // namespace

void AppendSegments::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  scratch.TakeBytes(static_cast<size_t>(pieces.closing) * StateBytes());  // See StagePieces.
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::rest, [&] { Append(device, *this); });
}

void StoreProjected::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  std::byte* const y = device.TakePanels(weight, in.count, scratch);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::linears, [&] {
    device.Multiply(weight, in, y);
    const kernels::cuda::LinearPages pages = {
        y + norm.width * ElementBytes(device.compute()),
        weight.out,
        weight.device.bias + norm.width,
        places.device,
        kernels::cuda::RowsOf(*strip.cache, strip.strip, strip.layer),
        norm.device.view(),
        static_cast<int32_t>(in.count),
        device.type()};
    device.Check(device.api().token.linear_pages(device.stream(), pages), "projected segments");
  });
}

}  // namespace ops
}  // namespace longview::models
