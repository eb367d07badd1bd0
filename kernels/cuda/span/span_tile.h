// The tensor-core forward: what one thread block does with one item, a tile of 64 query rows for
// one head.
//
// Four warps of 16 rows each walk the tile's blocks of 64 keys. While the warps compute on one
// block, the next is on its way into the other half of shared memory. Products are m16n8k16 with
// fp32 sums; the softmax is online, in fp32.
//
// The program is written once, over a machine: DeviceMachine (device_machine.cuh) is a thread block
// of a GPU, the tests' EmulatedMachine runs all its threads in lockstep on a CPU with the same
// fragment layouts. A machine offers:
//   EachThread(f)        f(thread) for every thread of the block
//   EachWarp(lanes, f)   f(warp, lanes of that warp)
//   CopyPiece(to, from, bytes)  16 bytes to shared memory, zeros from `bytes` on; may come late
//   EndCopies(), AwaitCopies(n)  all but the last n groups of copies have come
//   Sync()
// and a warp: Each(f) f(lane); LoadMatrices, Multiply, QuadMax, QuadSum, Any, All.
//
// Bits. A score is one chain over d in steps of 16. A row's keys come block by block in one order.
// A block of which a row sees nothing leaves its state as it is: the factor is 1, weights are 0.
// Rows meet in no sum. So a row's bits are a function of its own keys (see kernels/README.md).
//
// After Dao et al., FlashAttention-2 (arXiv 2307.08691), section 3.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/block_view.h"
#include "kernels/cuda/span/state_math.h"
#include "kernels/cuda/span/tile_bias.h"
#include "kernels/cuda/span/tile_lane.h"

namespace longview::kernels::cuda {

template <class Machine, int kD, Element kElement>
class SpanTile : private TileBias<Machine, kD, kElement> {
  using Base = TileBias<Machine, kD, kElement>;
  using Base::AddBias, Base::MakeDotted, Base::OutAt, Base::PartSlot, Base::QueryAt,
      Base::QueryPair;
  using Base::call_, Base::head_, Base::kv_head_, Base::machine_, Base::plan_, Base::tile_;

 public:
  static constexpr int kThreads = kTileThreads;
  using Lane = TileLane<kD>;
  using Lanes = typename Machine::template Lanes<Lane>;
  using Shared = TileShared<kD>;

  LONGVIEW_HD SpanTile(Machine& machine, const PlanView& plan, const SpanCall& call,
                       const Item& item)
      : Base(machine, plan, call, item) {}

  LONGVIEW_HD void Run(Lanes& lanes) {
    machine_.EachWarp(
        lanes, [&](auto& warp, auto& mine) { warp.Each([&](int lane) { Clear(mine[lane]); }); });
    BlockWalk walk(plan_, tile_);
    BlockPlace place = walk.Next();
    if (place.span >= 0) LoadBlock(place, 0);
    const float* q_add = nullptr;
    bool gathered = false;
    for (int stage = 0; place.span >= 0; stage ^= 1) {
      const BlockPlace next = walk.Next();
      if (next.span >= 0) LoadBlock(next, stage ^ 1);
      if (next.span >= 0) {
        machine_.template AwaitCopies<1>();
      } else {
        machine_.template AwaitCopies<0>();
      }
      machine_.Sync();
      const float* add = call_.sources[plan_.spans[place.span].source].q_add;
      if (!gathered || add != q_add) GatherQueries(lanes, add);
      gathered = true;
      q_add = add;
      AddBlock(lanes, place, Stage(stage));
      machine_.Sync();  // The next load may overwrite this stage.
      place = next;
    }
    Store(lanes);
  }

 private:
  LONGVIEW_HD static void Clear(Lane& lane) {
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) lane.o[n][i] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      lane.m[i] = -INFINITY;
      lane.l[i] = 0.0f;
    }
  }

  LONGVIEW_HD TileStage Stage(int stage) const {
    uint16_t* base = machine_.shared() + stage * 2 * Shared::kMatrix;
    return {base, base + Shared::kMatrix};
  }

  // ---- Keys and values into shared memory ----

  LONGVIEW_HD void LoadBlock(const BlockPlace& place, int stage) {
    const Span& span = plan_.spans[place.span];
    const SpanSource& source = call_.sources[span.source];
    const TileStage to = Stage(stage);
    constexpr int kPieces = kD / 8;  // Of one row.
    machine_.EachThread([&](int thread) {
      for (int i = thread; i < kBlockSlots * kPieces; i += kTileThreads) {
        const int row = i / kPieces, column = i % kPieces * 8;
        const int64_t slot = static_cast<int64_t>(place.block) * kBlockSlots + row;
        KeyPlace at{-1, -1};
        if (slot >= span.key0 && slot < static_cast<int64_t>(span.key0) + span.keys) {
          at = PlaceOfSlot(plan_, source, span.source, tile_.seq, slot, kv_head_);
        }
        const int to_element = row * Shared::kPitch + column;
        LoadPiece(source.k, at.k, column, call_.Dk, source.pieces, to.k + to_element);
        LoadPiece(source.v, at.v, column, call_.Dv, source.pieces, to.v + to_element);
      }
    });
    machine_.EndCopies();
  }

  // Eight elements of a row from `column` on; those at or beyond D are zeros, and all of a row
  // that is not there.
  LONGVIEW_HD void LoadPiece(const void* data, int64_t row, int column, int D, int pieces,
                             uint16_t* to) {
    const auto* from = static_cast<const uint16_t*>(data);
    int elements = row < 0 ? 0 : D - column;
    elements = elements < 0 ? 0 : elements > 8 ? 8 : elements;
    if (pieces != 0) {
      machine_.CopyPiece(to, elements > 0 ? from + row + column : from, elements * 2);
      return;
    }
    for (int e = 0; e < 8; ++e) to[e] = e < elements ? from[row + column + e] : uint16_t{0};
  }

  // ---- Queries into registers ----

  LONGVIEW_HD void GatherQueries(Lanes& lanes, const float* add) {
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) {
      warp.Each([&](int lane) {
        const float* row_add = add == nullptr ? nullptr : add + head_ * call_.Dk;
#pragma unroll
        for (int kk = 0; kk < kD / 16; ++kk) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int row = warp.index() * kWarpRows + lane / 4 + i % 2 * 8;
            const int column = kk * 16 + lane % 4 * 2 + i / 2 * 8;
            mine[lane].q[kk][i] = QueryPair(row, column, row_add);
          }
        }
      });
    });
  }

  // ---- One block of keys ----

  LONGVIEW_HD void AddBlock(Lanes& lanes, const BlockPlace& place, const TileStage& stage) {
    const Span& span = plan_.spans[place.span];
    const uint64_t keys = SpanKeys(plan_, span, place.block);
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) {
      warp.Each([&](int lane) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int row = warp.index() * kWarpRows + lane / 4 + i * 8;
          mine[lane].keys[i] =
              row < tile_.rows ? RowKeys(plan_, span, place.block, keys, row) : uint64_t{0};
        }
      });
      const auto some = [](const Lane& lane) { return (lane.keys[0] | lane.keys[1]) != 0; };
      const auto every = [](const Lane& lane) { return (lane.keys[0] & lane.keys[1]) == kAllKeys; };
      if (!warp.Any(mine, some)) return;
      const bool full = warp.All(mine, every);
      const DottedPanel dotted =
          span.bias >= 0 ? MakeDotted(warp, mine, span, place.block) : DottedPanel{};
      Score(warp, mine, stage.k);
      warp.Each([&](int lane) { Scale(mine[lane]); });
      if (span.bias >= 0) {
        warp.Each(
            [&](int lane) { AddBias(mine[lane], warp.index(), lane, span, place.block, dotted); });
      }
      if (!full) warp.Each([&](int lane) { Mask(mine[lane], lane); });
      Weigh(warp, mine);
      Sum(warp, mine, stage.v);
    });
  }

  // s = q . k, two panels of eight keys at a time.
  template <class Warp, class Mine>
  LONGVIEW_HD void Score(Warp& warp, Mine& mine, const uint16_t* k) const {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      warp.Each([&](int lane) {
#pragma unroll
        for (int i = 0; i < 4; ++i) mine[lane].s[2 * n][i] = mine[lane].s[2 * n + 1][i] = 0.0f;
      });
#pragma unroll
      for (int kk = 0; kk < kD / 16; ++kk) {
        // Matrices: keys 0-7 and 8-15 of the 16, each at the first and second eight columns.
        warp.template LoadMatrices<false>(mine, [&](int lane) {
          const int key = n * 16 + lane / 16 * 8 + lane % 8;
          return k + key * Shared::kPitch + kk * 16 + lane / 8 % 2 * 8;
        });
        warp.template Multiply<kElement>(
            mine, [&](Lane & r) -> auto& { return r.s[2 * n]; },
            [&](Lane & r) -> auto& { return r.q[kk]; }, 0);
        warp.template Multiply<kElement>(
            mine, [&](Lane & r) -> auto& { return r.s[2 * n + 1]; },
            [&](Lane & r) -> auto& { return r.q[kk]; }, 2);
      }
    }
  }

  LONGVIEW_HD void Scale(Lane& lane) const {
    const float scale = call_.scale * kLog2E;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) lane.s[n][i] *= scale;
    }
  }

  LONGVIEW_HD static void Mask(Lane& r, int lane) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = n * 8 + lane % 4 * 2 + i % 2;
        if ((r.keys[i / 2] >> key & 1) == 0) r.s[n][i] = -INFINITY;
      }
    }
  }

  // Scores to weights; the state moves to the new reference.
  template <class Warp, class Mine>
  LONGVIEW_HD void Weigh(Warp& warp, Mine& mine) const {
    warp.Each([&](int lane) {
      Lane& r = mine[lane];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        float top = r.s[0][2 * pair];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          top = fmaxf(top, fmaxf(r.s[n][2 * pair], r.s[n][2 * pair + 1]));
        }
        r.top[pair] = top;
      }
    });
    warp.QuadMax(
        mine, [](Lane & r) -> auto& { return r.top; });
    warp.Each([&](int lane) {
      Lane& r = mine[lane];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const float m = fmaxf(r.m[pair], r.top[pair]);
        // Of a row that has seen no key yet everything is zero; any finite reference keeps it so.
        const float reference = m == -INFINITY ? 0.0f : m;
        const float keep = Machine::Exp2(r.m[pair] - reference);
        r.m[pair] = m;
        float sum = r.l[pair] * keep;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
          for (int i = 2 * pair; i < 2 * pair + 2; ++i) {
            r.s[n][i] = Machine::Exp2(r.s[n][i] - reference);
            sum += r.s[n][i];
          }
        }
        r.l[pair] = sum;
#pragma unroll
        for (int n = 0; n < kD / 8; ++n) {
          r.o[n][2 * pair] *= keep;
          r.o[n][2 * pair + 1] *= keep;
        }
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        r.p[j][0] = Machine::template Pack<kElement>(r.s[2 * j][0], r.s[2 * j][1]);
        r.p[j][1] = Machine::template Pack<kElement>(r.s[2 * j][2], r.s[2 * j][3]);
        r.p[j][2] = Machine::template Pack<kElement>(r.s[2 * j + 1][0], r.s[2 * j + 1][1]);
        r.p[j][3] = Machine::template Pack<kElement>(r.s[2 * j + 1][2], r.s[2 * j + 1][3]);
      }
    });
  }

  // o += p . v, 16 keys and 16 columns at a time.
  template <class Warp, class Mine>
  LONGVIEW_HD void Sum(Warp& warp, Mine& mine, const uint16_t* v) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int n = 0; n < kD / 16; ++n) {
        // Transposed on the way; matrices: keys 0-7 and 8-15, each of two panels of columns.
        warp.template LoadMatrices<true>(mine, [&](int lane) {
          const int key = j * 16 + lane / 8 % 2 * 8 + lane % 8;
          return v + key * Shared::kPitch + n * 16 + lane / 16 * 8;
        });
        warp.template Multiply<kElement>(
            mine, [&](Lane & r) -> auto& { return r.o[2 * n]; },
            [&](Lane & r) -> auto& { return r.p[j]; }, 0);
        warp.template Multiply<kElement>(
            mine, [&](Lane & r) -> auto& { return r.o[2 * n + 1]; },
            [&](Lane & r) -> auto& { return r.p[j]; }, 2);
      }
    }
  }

  // ---- Out ----

  LONGVIEW_HD void Store(Lanes& lanes) {
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) {
      warp.QuadSum(
          mine, [](Lane & r) -> auto& { return r.l; });
      warp.Each([&](int lane) {
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          const int row = warp.index() * kWarpRows + lane / 4 + pair * 8;
          if (row >= tile_.rows) continue;
          if (tile_.part >= 0) {
            StorePart(mine[lane], pair, row, lane);
          } else {
            StoreRow(mine[lane], pair, row, lane);
          }
        }
      });
    });
  }

  LONGVIEW_HD void StorePart(const Lane& r, int pair, int row, int lane) const {
    const int64_t slot = PartSlot(row);
    if (lane % 4 == 0) {
      call_.part_m[slot] = pair == 0 ? r.m[0] : r.m[1];
      call_.part_l[slot] = pair == 0 ? r.l[0] : r.l[1];
    }
    float* o = call_.part_o + slot * call_.part_stride;
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int column = n * 8 + lane % 4 * 2 + i;
        if (column < call_.Dv) o[column] = pair == 0 ? r.o[n][i] : r.o[n][2 + i];
      }
    }
  }

  LONGVIEW_HD void StoreRow(const Lane& r, int pair, int row, int lane) const {
    const float l = pair == 0 ? r.l[0] : r.l[1];
    const float share = Share(l);
    auto* out = static_cast<uint16_t*>(call_.out) + OutAt(row);
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      const int column = n * 8 + lane % 4 * 2;
      if (column >= call_.Dv) continue;
      // Adding zero makes one zero of both: which of them a sum ends in is no property of the row.
      const float low = (pair == 0 ? r.o[n][0] : r.o[n][2]) * share + 0.0f;
      const float high = (pair == 0 ? r.o[n][1] : r.o[n][3]) * share + 0.0f;
      const uint32_t both = Machine::template Pack<kElement>(low, high);
      if (column + 1 < call_.Dv && call_.out_pairs != 0) {
        *reinterpret_cast<uint32_t*>(out + column) = both;
        continue;
      }
      out[column] = static_cast<uint16_t>(both);
      if (column + 1 < call_.Dv) out[column + 1] = static_cast<uint16_t>(both >> 16);
    }
  }
};

}  // namespace longview::kernels::cuda
