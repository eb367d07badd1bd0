// The fp32 forward: what one thread block does with one item of 64 query rows, in plain fp32
// arithmetic (tensor cores would round the operands).
//
// 128 threads as 16 x 8: thread (r, c) makes the scores of rows r, r + 16, r + 32, r + 48 with keys
// c, c + 8, ..., and of the same rows' sums every eighth run of four columns. Between the two, two
// threads a row turn scores into weights. Keys and values take turns in one block of shared memory.
//
// Written over a machine, as span_tile.h. Bits: a score is one chain over d, a sum one chain over
// the block's keys; a block of which a row sees nothing leaves its state as it is.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/block_view.h"
#include "kernels/cuda/span/state_math.h"
#include "kernels/cuda/span/tile_head.h"

namespace longview::kernels::cuda {

inline constexpr int kFloatTileThreads = 128;

// Shared memory in floats; rows are four floats apart from a multiple of 32, so that eight
// neighbouring rows lie in different banks.
template <int kD>
struct FloatTileShared {
  static constexpr int kPitch = kD + 4;
  static constexpr int kScorePitch = kBlockSlots + 4;
  static constexpr int kQueries = 0;
  static constexpr int kKeys = kQueries + kMaxTileRows * kPitch;
  static constexpr int kScores = kKeys + kBlockSlots * kPitch;
  static constexpr int kFactors = kScores + kMaxTileRows * kScorePitch;  // One a row.
  static constexpr int kBytes = (kFactors + kMaxTileRows) * 4;
  static constexpr int kBytesWithBias = kBytes;
};

// The state of one thread.
template <int kD>
struct FloatTileLane {
  float o[4][kD / 8];  // Four rows; runs of four columns, 32 apart.
  float s[4][8];       // Scores of the four rows with eight keys.
  float m;             // Maximum of row thread / 2, both threads the same.
  float l;             // This thread's half of the row's sum.
  float top[2];        // [0]: the largest score of the half, then of the row.
};

template <class Machine, int kD>
class SpanFloatTile : private TileHead {
 public:
  static constexpr int kThreads = kFloatTileThreads;
  using Lane = FloatTileLane<kD>;
  using Lanes = typename Machine::template Lanes<Lane>;
  using Shared = FloatTileShared<kD>;

  LONGVIEW_HD SpanFloatTile(Machine& machine, const PlanView& plan, const SpanCall& call,
                            const Item& item)
      : TileHead(plan, call, item),
        machine_(machine),
        shared_(reinterpret_cast<float*>(machine.shared())) {}

  LONGVIEW_HD void Run(Lanes& lanes) {
    Each(lanes, [&](Lane& r, int) { Clear(r); });
    const float* q_add = nullptr;
    bool gathered = false;
    BlockWalk walk(plan_, tile_);
    for (BlockPlace place = walk.Next(); place.span >= 0; place = walk.Next()) {
      const Span& span = plan_.spans[place.span];
      const SpanSource& source = call_.sources[span.source];
      if (!gathered || source.q_add != q_add) GatherQueries(source.q_add);
      gathered = true;
      q_add = source.q_add;
      LoadRows(place, source.k, call_.Dk, /*values=*/false);
      Each(lanes, [&](Lane& r, int thread) { Score(r, thread, span, place.block); });
      machine_.Sync();  // Scores are there, keys are done with.
      LoadRows(place, source.v, call_.Dv, /*values=*/true, [&] { Weigh(lanes); });
      Each(lanes, [&](Lane& r, int thread) { Sum(r, thread); });
      machine_.Sync();  // The next keys overwrite these values.
    }
    Finish(lanes);
  }

 private:
  // f(lane, thread) for every thread.
  template <class F>
  LONGVIEW_HD void Each(Lanes& lanes, F&& f) {
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) {
      warp.Each([&](int lane) { f(mine[lane], warp.index() * 32 + lane); });
    });
  }

  LONGVIEW_HD static int RowOf(int thread, int i) { return thread / 8 + i * 16; }
  LONGVIEW_HD static int ColumnOf(int thread, int run) { return (thread % 8 + run * 8) * 4; }

  LONGVIEW_HD static void Clear(Lane& r) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int c = 0; c < kD / 8; ++c) r.o[i][c] = 0.0f;
    }
    r.m = -INFINITY;
    r.l = 0.0f;
  }

  // Queries with the source's q_add; zeros where there is no row or column.
  LONGVIEW_HD void GatherQueries(const float* q_add) {
    machine_.EachThread([&](int thread) {
      for (int i = thread; i < kMaxTileRows * kD; i += kFloatTileThreads) {
        const int row = i / kD, d = i % kD;
        float q = 0.0f;
        if (row < tile_.rows && d < call_.Dk) {
          q = static_cast<const float*>(call_.q)[QueryAt(row) + d];
          if (q_add != nullptr) q += q_add[head_ * call_.Dk + d];
        }
        shared_[Shared::kQueries + row * Shared::kPitch + d] = q;
      }
    });
  }

  struct Nothing {
    LONGVIEW_HD void operator()() const {}
  };

  // A block's keys or values into shared memory; `meanwhile` runs while they are on their way.
  template <class Meanwhile = Nothing>
  LONGVIEW_HD void LoadRows(const BlockPlace& place, const void* data, int D, bool values,
                            Meanwhile&& meanwhile = {}) {
    const SpanSource& source = SourceOf(place);
    const auto* from = static_cast<const float*>(data);
    machine_.EachThread([&](int thread) {
      for (int i = thread; i < kBlockSlots * (kD / 4); i += kFloatTileThreads) {
        const int row = i / (kD / 4), column = i % (kD / 4) * 4;
        const KeyPlace key = PlaceOfKey(place, row);
        const int64_t at = values ? key.v : key.k;
        int elements = at < 0 ? 0 : D - column;
        elements = elements < 0 ? 0 : elements > 4 ? 4 : elements;
        float* to = shared_ + Shared::kKeys + row * Shared::kPitch + column;
        if (source.pieces != 0) {
          machine_.CopyPiece(to, elements > 0 ? from + at + column : from, elements * 4);
          continue;
        }
        for (int e = 0; e < 4; ++e) to[e] = e < elements ? from[at + column + e] : 0.0f;
      }
    });
    machine_.EndCopies();
    meanwhile();
    machine_.template AwaitCopies<0>();
    machine_.Sync();
  }

  LONGVIEW_HD void Score(Lane& r, int thread, const Span& span, int32_t block) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int n = 0; n < 8; ++n) r.s[i][n] = 0.0f;
    }
    const float* q = shared_ + Shared::kQueries + RowOf(thread, 0) * Shared::kPitch;
    const float* k = shared_ + Shared::kKeys + thread % 8 * Shared::kPitch;
#pragma unroll 2
    for (int d = 0; d < kD; d += 4) {
      float a[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) Machine::ReadShared(q + i * 16 * Shared::kPitch + d, a[i]);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        float b[4];
        Machine::ReadShared(k + n * 8 * Shared::kPitch + d, b);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int e = 0; e < 4; ++e) r.s[i][n] += a[i][e] * b[e];
        }
      }
    }
    const uint64_t keys = SpanKeys(plan_, span, block);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = RowOf(thread, i);
      const uint64_t seen = row < tile_.rows ? RowKeys(plan_, span, block, keys, row) : uint64_t{0};
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const int key = thread % 8 + n * 8;
        float x = -INFINITY;
        if ((seen >> key & 1) != 0) {
          x = call_.scale * r.s[i][n];
          if (span.bias >= 0) x += KeyBias(span, block * kBlockSlots + key - span.key0, row);
          x *= kLog2E;
        }
        shared_[Shared::kScores + row * Shared::kScorePitch + key] = x;
      }
    }
  }

  // Scores to weights, in place: threads 2 i and 2 i + 1 take half a row each.
  LONGVIEW_HD void Weigh(Lanes& lanes) {
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) {
      warp.Each([&](int lane) {
        const float* s = HalfRow(warp.index() * 32 + lane);
        float top = s[0];
        for (int j = 1; j < kBlockSlots / 2; ++j) top = fmaxf(top, s[j]);
        mine[lane].top[0] = top;
      });
      warp.template MaxGroups<2>(mine, [](Lane& r) -> float& { return r.top[0]; });
      warp.Each([&](int lane) {
        Lane& r = mine[lane];
        const int thread = warp.index() * 32 + lane;
        const float m = fmaxf(r.m, r.top[0]);
        // A row that has seen no key yet is all zero; any finite reference keeps it so.
        const float reference = m == -INFINITY ? 0.0f : m;
        const float keep = exp2f(r.m - reference);
        r.m = m;
        float sum = r.l * keep;
        float* s = HalfRow(thread);
        for (int j = 0; j < kBlockSlots / 2; ++j) {
          s[j] = exp2f(s[j] - reference);
          sum += s[j];
        }
        r.l = sum;
        if (thread % 2 == 0) shared_[Shared::kFactors + thread / 2] = keep;
      });
    });
  }

  LONGVIEW_HD float* HalfRow(int thread) const {
    return shared_ + Shared::kScores + thread / 2 * Shared::kScorePitch +
           thread % 2 * (kBlockSlots / 2);
  }

  LONGVIEW_HD void Sum(Lane& r, int thread) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float keep = shared_[Shared::kFactors + RowOf(thread, i)];
#pragma unroll
      for (int c = 0; c < kD / 8; ++c) r.o[i][c] *= keep;
    }
    const float* p = shared_ + Shared::kScores + RowOf(thread, 0) * Shared::kScorePitch;
    const float* v = shared_ + Shared::kKeys + thread % 8 * 4;
    for (int j = 0; j < kBlockSlots; j += 4) {
      float a[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) Machine::ReadShared(p + i * 16 * Shared::kScorePitch + j, a[i]);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int run = 0; run < kD / 32; ++run) {
          float b[4];
          Machine::ReadShared(v + (j + e) * Shared::kPitch + run * 32, b);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) r.o[i][run * 4 + c] += a[i][e] * b[c];
          }
        }
      }
    }
  }

  LONGVIEW_HD void Finish(Lanes& lanes) {
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) {
      warp.template SumGroups<2>(mine, [](Lane& r) -> float& { return r.l; });
      warp.Each([&](int lane) {
        const int thread = warp.index() * 32 + lane, row = thread / 2;
        if (thread % 2 != 0) return;
        shared_[Shared::kFactors + row] = mine[lane].l;
        if (tile_.part < 0 || row >= tile_.rows) return;
        const int64_t slot = PartSlot(row);
        call_.part_m[slot] = mine[lane].m;
        call_.part_l[slot] = mine[lane].l;
      });
    });
    machine_.Sync();
    Each(lanes, [&](Lane& r, int thread) { Store(r, thread); });
  }

  LONGVIEW_HD void Store(const Lane& r, int thread) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = RowOf(thread, i);
      if (row >= tile_.rows) continue;
      const float share = Share(shared_[Shared::kFactors + row]);
      float* out = tile_.part >= 0 ? call_.part_o + PartSlot(row) * call_.part_stride
                                   : static_cast<float*>(call_.out) + OutAt(row);
#pragma unroll
      for (int c = 0; c < kD / 8; ++c) {
        const int column = ColumnOf(thread, c / 4) + c % 4;
        if (column >= call_.Dv) continue;
        out[column] = tile_.part >= 0 ? r.o[i][c] : r.o[i][c] * share + 0.0f;
      }
    }
  }

  Machine& machine_;
  float* const shared_;
};

}  // namespace longview::kernels::cuda
