// Open segments and positions of generating sequences on the host.
//
// Every segment is summed token by token in fp32, whether it arrives whole or one token at a time,
// so that where prefill is cut, or a fork goes on, changes no bit.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/dense/row_product.h"
#include "kernels/pool/segment_pool.h"
#include "models/layers/landmark_row.h"
#include "models/layers/span_rows.h"
#include "models/ops/host_ops.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

using kernels::PoolState;

// Scratch of AppendSegments.
struct SegmentBuffers {
  std::byte* states = nullptr;  // One per piece.
  float* means = nullptr;       // [threads, 2, columns, dim]
  float* keys = nullptr;        // [closing * rank, width]
  float* values = nullptr;
};

SegmentBuffers Carve(const OpenSegmentArgs& args, int threads, Carver& carver) {
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
  SegmentWriter(const OpenSegmentArgs& args, Compute compute, const SegmentBuffers& buffers,
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
        floats.bias_norm(to, zeros_, args_.norm->host.view(), width, to);
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

  const OpenSegmentArgs& args_;
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

}  // namespace

void HostOps::AppendSegments(const OpenSegmentArgs& args) {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  const std::span<const SegmentPiece> pieces = args.pieces.pieces;
  Carver carver(scratch_);
  const int threads = context_.pool->threads();
  const SegmentBuffers buffers = Carve(args, threads, carver);
  const SegmentWriter writer(args, compute(), buffers, Zeros(args.width()));
  writer.Load();

  states_.clear();
  closing_.clear();
  segment_rows_.clear();
  for (size_t i = 0; i < pieces.size(); ++i) {
    states_.push_back(writer.Piece(i));
    segment_rows_.push_back(pieces[i].begin);
    if (pieces[i].closes) closing_.push_back(static_cast<int64_t>(i));
  }
  segment_rows_.push_back(pieces.empty() ? 0 : pieces.back().end);
  const kernels::DType type = SpanType(compute());
  const kernels::PoolValue projected[] = {ValueOf(args.from.own_keys, type, args.dim()),
                                          ValueOf(args.from.own_values, type, args.dim())};
  kernels::PoolCall call;
  call.scores = args.from.scores.floats();
  call.score_stride = call.columns = args.columns();
  call.columns_per_head = args.rank;
  call.offsets = segment_rows_;
  call.values = projected;
  const kernels::ParallelFor& pool = PoolFor(args.from.q.count);
  PoolAppend(call, states_, pool);
  if (args.hidden) {
    const kernels::PoolValue hidden[] = {
        ValueOf(args.hidden, kernels::DType::kFloat32, args.dim())};
    for (PoolState& state : states_) state = writer.Hidden(state);
    call.values = hidden;
    PoolAppend(call, states_, pool);
  }

  const int64_t closing = args.pieces.closing, means = 2 * args.width() * args.rank;
  const auto close = [&](int64_t begin, int64_t end, int thread) {
    for (int64_t s = begin; s < end; ++s) {
      writer.Close(static_cast<size_t>(closing_[static_cast<size_t>(s)]), s,
                   buffers.means + thread * means);
    }
  };
  if (closing < 2 * threads) {
    close(0, closing, 0);
  } else {
    kernels::RunOnThreads(*context_.pool, [&](int thread) {
      close(closing * thread / threads, closing * (thread + 1) / threads, thread);
    });
  }
  if (closing > 0) {
    args.strip.cache->Write(args.strip.strip, args.strip.layer, args.places.host,
                            FloatRows(buffers.keys, buffers.values, args.width(), args.strip.heads),
                            *context_.pool);
  }
  writer.Store();
}

void HostOps::StoreProjected(const Weight& weight, const NormWeight& norm, const Rows& in,
                             const StripRef& strip, const PlacesRef& places) {
  const int64_t width = norm.width, bytes = width * ElementBytes(compute());
  auto* const keys = reinterpret_cast<float*>(scratch_);
  float* const values = keys + in.count * width;
  const float* bias = weight.host->bias.data() + width;
  const float* zeros = Zeros(width);
  Multiply(weight, in, [&](int64_t row, std::byte* y) {
    for (const int part : {0, 1}) {
      float* to = (part == 0 ? keys : values) + row * width;
      kernels_.bias_widen(y + (1 + part) * bytes, bias + part * width, width, to);
      floats_.bias_norm(to, zeros, norm.host.view(), width, to);
    }
  });
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  strip.cache->Write(strip.strip, strip.layer, places.host,
                     FloatRows(keys, values, width, strip.heads), *context_.pool);
}

// Units of a head's tables, one table behind the other.
void HostOps::ScorePositions(const Rows& q, int heads, std::span<const PositionScores> tables) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  const int64_t width = q.width, dim = width / heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  auto* const queries = reinterpret_cast<float*>(scratch_);  // [tables, rows, width]
  int64_t units = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const float* added = tables[t].table.rows.dot_add;
    float* to = queries + static_cast<int64_t>(t) * q.count * width;
    for (int64_t i = 0; i < q.count; ++i) {
      kernels_.bias_widen(q.Row(i), added != nullptr ? added : Zeros(width), width, to + i * width);
    }
    for (int64_t i = 0; i < q.count * width; ++i) to[i] *= scale;
    units += (tables[t].stride + kernels::kRowUnit - 1) / kernels::kRowUnit;
  }
  const kernels::Isa isa = kernels::BestFloatIsa();
  // Entries [first, first + kRowUnit) of a table, for the rows that read any of them.
  const auto score = [&](size_t t, int64_t head, int64_t first) {
    const PositionScores& scores = tables[t];
    const PositionTable& table = scores.table;
    const size_t bytes = kernels::RowWeightBytes(table.packed, dim, table.pack_type);
    const int64_t at = first % table.packed;
    const kernels::RowWeight pack = {
        table.packs[static_cast<size_t>(first / table.packed)] + static_cast<size_t>(head) * bytes,
        table.pack_type, table.packed, dim};
    const kernels::RowWeight part =
        RowWeightPart(pack, at, std::min(at + kernels::kRowUnit, at + scores.stride - first));
    const float* from = queries + static_cast<int64_t>(t) * q.count * width + head * dim;
    float* const out = scores.out.floats() + head * q.count * scores.stride + first;
    const auto reads = [&](int64_t row) { return scores.limits.data[row] > first; };
    for (int64_t begin = 0, end = 0; begin < q.count; begin = end) {
      for (end = begin + 1; end < q.count && reads(end) == reads(begin);) ++end;
      if (!reads(begin)) continue;
      MultiplyRows(part, from + begin * width, width, end - begin, out + begin * scores.stride,
                   scores.stride, serial_, isa);
    }
  };
  ParallelRanges(*context_.pool, heads * units, 4, [&](long from, long to) {
    for (long unit = from; unit < to; ++unit) {
      int64_t first = unit % units * kernels::kRowUnit;
      size_t t = 0;
      for (; first >= tables[t].stride; ++t) {
        first -= (tables[t].stride + kernels::kRowUnit - 1) / kernels::kRowUnit * kernels::kRowUnit;
      }
      score(t, unit / units, first);
    }
  });
}

size_t HostCount::OpenSegmentScratch(const OpenSegmentArgs& args) const {
  Carver carver(nullptr);
  Carve(args, context_.pool->threads(), carver);
  return carver.used();
}

size_t HostCount::StoreProjectedScratch(const Weight& weight, const Rows& in) const {
  return static_cast<size_t>(2 * in.count * weight.in) * sizeof(float);
}

size_t HostCount::PositionScratch(const Rows& q, std::span<const PositionScores> tables) const {
  return tables.size() * static_cast<size_t>(q.count * q.width) * sizeof(float);
}

}  // namespace longview::models
