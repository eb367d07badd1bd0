// Open segments and positions of generating sequences on a device.
#include <cmath>
#include <vector>

#include "kernels/cuda/token/cache_rows.h"
#include "models/layers/span_rows.h"
#include "models/ops/device_ops.h"

namespace longview::models {

using kernels::cuda::PoolRun;
using kernels::cuda::StateShift;

// A segment that was begun before, or will go on, has its sums in the cache; those of the others
// are scratch.
PiecesRef DeviceOps::StagePieces(const kernels::ProjectionCache* cache,
                                 std::span<const SegmentPiece> pieces) {
  const kernels::CacheShape& shape = cache->shape();
  const size_t bytes =
      kernels::AlignUp(kernels::PoolStateBytes(shape.pool_columns, shape.pool_widths));
  std::vector<PoolRun> runs;
  for (const bool closing : {true, false}) {
    for (const SegmentPiece& piece : pieces) {
      if (piece.closes != closing) continue;
      const bool cached = piece.resumes || !piece.closes;
      std::byte* state =
          cached ? cache->StateAddress(*piece.sequence, 0) : scratch_ + runs.size() * bytes;
      runs.push_back({reinterpret_cast<float*>(state), piece.begin, piece.end,
                      piece.resumes ? 0 : 1, cached ? 1 : 0});
    }
  }
  const int64_t closing = ClosingPieces(pieces);
  lists_->Note(closing);
  return {pieces, closing, lists_->Add(runs)};
}

void DeviceOps::SumPieces(const OpenSegmentArgs& args, int64_t first, int64_t count) const {
  if (count == 0) return;
  const int32_t columns = args.columns(), dim = args.dim();
  kernels::cuda::PoolAppend append = {
      {args.from.scores.floats(), columns, columns, args.rank, nullptr},
      {args.from.own_keys.data, args.from.own_keys.stride, dim, dim, SpanType(compute())},
      args.from.own_values.data,
      args.pieces.device + first,
      static_cast<int32_t>(count),
      StateShift(args.strip.cache->shape(), args.strip.layer),
      args.state_columns(),
      /*column0=*/0};
  device_.Check(device_.api().pool.append(device_.stream(), append), "sums of segments");
  if (!args.hidden) return;
  append.rows = {args.hidden.data, args.hidden.stride, dim, dim, kernels::DType::kFloat32};
  append.second = nullptr;
  append.column0 = columns;
  device_.Check(device_.api().pool.append(device_.stream(), append), "sums of segments");
}

void DeviceOps::AppendSegments(const OpenSegmentArgs& args) {
  Timed(&EncoderTimes::rest, [&] {
    // A sequence may end a segment and begin another.
    const int64_t closing = args.pieces.closing;
    SumPieces(args, 0, closing);
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
          args.norm->device.view(), SpanType(compute())};
      device_.Check(device_.api().token.pages(device_.stream(), pages), "projected segments");
      if (args.hidden) {
        sums.column0 = args.columns();
        const kernels::cuda::SegmentMeans means = {
            sums,       args.places.device, args.hidden_means.data, args.strip.heads,
            args.dim(), SpanType(compute())};
        device_.Check(device_.api().token.means(device_.stream(), means), "means of segments");
      }
    }
    SumPieces(args, closing, std::ssize(args.pieces.pieces) - closing);
  });
}

void DeviceOps::StoreProjected(const Weight& weight, const NormWeight& norm, const Rows& in,
                               const StripRef& strip, const PlacesRef& places) {
  Timed(&EncoderTimes::linears, [&] {
    Multiply(weight, in, scratch_);
    const kernels::cuda::LinearPages pages = {
        scratch_ + norm.width * ElementBytes(compute()),
        weight.out,
        weight.device.bias + norm.width,
        places.device,
        kernels::cuda::RowsOf(*strip.cache, strip.strip, strip.layer),
        norm.device.view(),
        static_cast<int32_t>(in.count),
        SpanType(compute())};
    device_.Check(device_.api().token.linear_pages(device_.stream(), pages), "projected segments");
  });
}

void DeviceOps::ScorePositions(const Rows& q, int heads, std::span<const PositionScores> tables) {
  Timed(&EncoderTimes::attention, [&] {
    const auto dim = static_cast<int32_t>(q.width / heads);
    for (const PositionScores& scores : tables) {
      if (scores.stride == 0) continue;
      const kernels::Table& rows = scores.table.rows;
      const kernels::cuda::PositionScores args = {q.data,
                                                  q.stride,
                                                  rows.dot_add,
                                                  rows.data,
                                                  rows.head_stride / dim,
                                                  scores.limits.data,
                                                  static_cast<int32_t>(scores.stride),
                                                  q.count * scores.stride,
                                                  scores.stride,
                                                  scores.out.floats(),
                                                  static_cast<int32_t>(q.count),
                                                  heads,
                                                  dim,
                                                  1.0f / std::sqrt(static_cast<float>(dim)),
                                                  SpanType(compute())};
      device_.Check(device_.api().token.positions(device_.stream(), args), "scores of positions");
    }
  });
}

size_t DeviceCount::OpenSegmentScratch(const OpenSegmentArgs& args) const {
  return static_cast<size_t>(args.pieces.closing) * args.StateBytes();
}

size_t DeviceCount::StoreProjectedScratch(const Weight& weight, const Rows& in) const {
  return static_cast<size_t>((in.count + kDevicePanelTail) * weight.out * ElementBytes(compute()));
}

}  // namespace longview::models
