// Every segment is summed token by token in fp32, whether it arrives whole or one token at a time,
// so that where prefill is cut, or a fork goes on, changes no bit.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/layers/landmark_row.h"
#include "models/layers/span_rows.h"
#include "models/ops/host_backend.h"
#include "models/ops/project.h"
#include "models/transformer_ls/append_segments.h"

namespace longview::models::ops {
namespace {

using kernels::PoolState;

// Scratch of AppendSegments.
struct SegmentBuffers {
  std::byte* states = nullptr;  // One per piece.
  float* means = nullptr;       // [threads, 2, columns, dim]
  float* keys = nullptr;        // [closing * rank, width]
  float* values = nullptr;
};

SegmentBuffers Carve(const AppendSegments& args, int threads, Carver& carver) {
  const int64_t landmarks = args.pieces.closing * args.rank;
  SegmentBuffers buffers;
  buffers.states = carver.TakeBytes(args.pieces.pieces.size() * args.StateBytes());
  buffers.means = carver.Take<float>(2 * args.width() * args.rank * threads);
  buffers.keys = carver.Take<float>(landmarks * args.width());
  buffers.values = carver.Take<float>(landmarks * args.width());
  return buffers;
}

// One call's work on its states.
class SegmentWriter {
 public:
  SegmentWriter(const AppendSegments& args, Compute compute, const SegmentBuffers& buffers,
                const float* zeros)
      : args_(args), compute_(compute), buffers_(buffers), zeros_(zeros) {}

  PoolState Piece(size_t i) const {
    return kernels::CarvePoolState(buffers_.states + i * state_bytes_, columns_, widths_);
  }
  // The columns of hidden states.
  PoolState Hidden(const PoolState& state) const {
    PoolState hidden;
    hidden.m = state.m + args_.columns();
    hidden.s = state.s + args_.columns();
    hidden.sums[0] = state.sums[0] + int64_t{args_.columns()} * args_.dim();
    return hidden;
  }

  void Load() const {
    for (size_t i = 0; i < args_.pieces.pieces.size(); ++i) {
      const SegmentPiece& piece = args_.pieces.pieces[i];
      if (piece.resumes) {
        Copy(Cached(piece), Piece(i));
      } else {
        ResetPoolState(Piece(i), columns_, widths_);
      }
    }
  }

  void Store() const {
    for (size_t i = 0; i < args_.pieces.pieces.size(); ++i) {
      const SegmentPiece& piece = args_.pieces.pieces[i];
      if (!piece.last) continue;
      if (piece.closes) {
        ResetPoolState(Cached(piece), columns_, widths_);
      } else {
        Copy(Piece(i), Cached(piece));
      }
    }
  }

  // Landmarks of the segment that piece `piece` ends, the `segment`-th to end.
  void Close(size_t piece, int64_t segment, float* means) const {
    const int64_t width = args_.width();
    const PoolState state = Piece(piece);
    float* const out[] = {means, means + width * args_.rank};
    PoolMeans(state, args_.columns(), widths_, out);
    const LandmarkShape shape = {args_.strip.heads, args_.rank, args_.dim()};
    const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
    for (int k = 0; k < args_.rank; ++k) {
      const int64_t at = (segment * args_.rank + k) * width;
      for (const auto& [mean, to] :
           {std::pair(out[0], buffers_.keys + at), std::pair(out[1], buffers_.values + at)}) {
        JoinLandmark(mean, shape, 0, k, to);
        floats.bias_norm(to, zeros_, args_.norm.host.view(), width, to);
      }
    }
    if (!args_.hidden) return;
    PoolMeans(Hidden(state), args_.columns(), std::span(widths_).first(1), std::span(out).first(1));
    const RowKernels& rows = ChooseRowKernels(compute_);
    for (int k = 0; k < args_.rank; ++k) {
      JoinLandmark(out[0], shape, 0, k, out[1]);
      rows.narrow(out[1], width, args_.hidden_means.Row(segment * args_.rank + k));
    }
  }

 private:
  PoolState Cached(const SegmentPiece& piece) const {
    return args_.strip.cache->State(*piece.sequence, args_.strip.layer);
  }
  void Copy(const PoolState& from, const PoolState& to) const {
    std::copy_n(from.m, columns_, to.m);
    std::copy_n(from.s, columns_, to.s);
    for (int i = 0; i < 2; ++i) {
      std::copy_n(from.sums[i], int64_t{columns_} * args_.dim(), to.sums[i]);
    }
  }

  const AppendSegments& args_;
  const Compute compute_;
  const SegmentBuffers& buffers_;
  const float* const zeros_;
  const int columns_ = args_.state_columns();
  const std::array<int, 2> widths_ = {args_.dim(), args_.dim()};
  const size_t state_bytes_ = args_.StateBytes();
};

// fp32 rows of keys and values, heads side by side.
kernels::ProjectionCache::Rows FloatRows(const float* keys, const float* values, int64_t width,
                                         int heads) {
  kernels::ProjectionCache::Rows rows;
  rows.k = keys;
  rows.v = values;
  rows.k_row_stride = rows.v_row_stride = width;
  rows.k_head_stride = rows.v_head_stride = width / heads;
  return rows;
}

kernels::PoolValue ValueOf(const Rows& rows, kernels::DType dtype, int dim) {
  kernels::PoolValue value;
  value.data = rows.data;
  value.dtype = dtype;
  value.row_stride = rows.stride;
  value.head_stride = value.width = dim;
  return value;
}

void Append(HostBackend& host, const AppendSegments& args, const SegmentBuffers& buffers) {
  const std::span<const SegmentPiece> pieces = args.pieces.pieces;
  const int threads = host.threads();
  const SegmentWriter writer(args, host.compute(), buffers, host.Zeros(args.width()));
  writer.Load();

  std::vector<PoolState> states;      // By piece.
  std::vector<int32_t> segment_rows;  // First row of each piece; one entry more: the end.
  std::vector<int64_t> ends;          // Pieces that end their segments.
  for (size_t i = 0; i < pieces.size(); ++i) {
    states.push_back(writer.Piece(i));
    segment_rows.push_back(pieces[i].begin);
    if (pieces[i].closes) ends.push_back(static_cast<int64_t>(i));
  }
  segment_rows.push_back(pieces.empty() ? 0 : pieces.back().end);
  const kernels::DType type = SpanType(host.compute());
  const kernels::PoolValue projected[] = {ValueOf(args.from.own_keys, type, args.dim()),
                                          ValueOf(args.from.own_values, type, args.dim())};
  kernels::PoolCall call;
  call.scores = args.from.scores.floats();
  call.score_stride = call.columns = args.columns();
  call.columns_per_head = args.rank;
  call.offsets = segment_rows;
  call.values = projected;
  const kernels::ParallelFor& pool = host.PoolFor(args.from.q.count);
  PoolAppend(call, states, pool);
  if (args.hidden) {
    const kernels::PoolValue hidden[] = {
        ValueOf(args.hidden, kernels::DType::kFloat32, args.dim())};
    // Averages of hidden states take the scores of keys; their sums are the columns behind those.
    for (PoolState& state : states) state = writer.Hidden(state);
    call.values = hidden;
    PoolAppend(call, states, pool);
  }

  const int64_t closing = args.pieces.closing, means = 2 * args.width() * args.rank;
  const auto close = [&](int64_t begin, int64_t end, int thread) {
    for (int64_t s = begin; s < end; ++s) {
      writer.Close(static_cast<size_t>(ends[static_cast<size_t>(s)]), s,
                   buffers.means + thread * means);
    }
  };
  // Waking the threads costs more than the landmarks of a few segments.
  if (closing < 2 * threads) {
    close(0, closing, 0);
  } else {
    kernels::RunOnThreads(host.pool(), [&](int thread) {
      close(closing * thread / threads, closing * (thread + 1) / threads, thread);
    });
  }
  if (closing > 0) {
    args.strip.cache->Write(args.strip.strip, args.strip.layer, args.places.host,
                            FloatRows(buffers.keys, buffers.values, args.width(), args.strip.heads),
                            host.pool());
  }
  writer.Store();
}

}  // namespace

size_t AppendSegments::StateBytes() const {
  const int widths[] = {dim(), dim()};
  return kernels::AlignUp(kernels::PoolStateBytes(state_columns(), widths));
}

OpWork AppendSegments::Work() const {
  return {.attention = 2 * rank * from.q.elements() / static_cast<double>(from.q.width) *
                       static_cast<double>(width())};
}

void AppendSegments::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  const SegmentBuffers buffers = Carve(*this, host.threads(), scratch);
  if (!host.Runs(scratch)) return;
  const Stopwatch watch = host.Timed(&RunTimes::rest);
  Append(host, *this, buffers);
}

OpWork StoreProjected::Work() const { return ProductWork(weight, in); }

void StoreProjected::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  float* const keys = scratch.Take<float>(2 * in.count * weight.in);
  float* const values = keys + in.count * weight.in;
  std::byte* const products = host.TakeProducts(weight, in, scratch);
  if (!host.Runs(scratch)) return;
  const int64_t width = norm.width, bytes = width * ElementBytes(host.compute());
  const float* bias = weight.host->bias.data() + width;
  const float* zeros = host.Zeros(width);
  host.Multiply(weight, in, products, [&](int64_t row, std::byte* y) {
    for (const int part : {0, 1}) {
      float* to = (part == 0 ? keys : values) + row * width;
      host.kernels().bias_widen(y + (1 + part) * bytes, bias + part * width, width, to);
      host.floats().bias_norm(to, zeros, norm.host.view(), width, to);
    }
  });
  const Stopwatch watch = host.Timed(&RunTimes::rest);
  strip.cache->Write(strip.strip, strip.layer, places.host,
                     FloatRows(keys, values, width, strip.heads), host.pool());
}

}  // namespace longview::models::ops
