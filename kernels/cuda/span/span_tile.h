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
#include "kernels/cuda/span/tile_bias.h"
#include "kernels/cuda/span/tile_lane.h"

namespace longview::kernels::cuda {

template <class Machine, int kD, Element kElement>
class SpanTile : private TileBias<Machine, kD, kElement> {
  using Base = TileBias<Machine, kD, kElement>;
  using Base::AddBias, Base::MakeDotted;
  using Base::call_, Base::machine_, Base::plan_, Base::tile_;
  using Base::Clear, Base::Mask, Base::Scale, Base::SeesAll, Base::SeesSome;
  using Base::PieceElements, Base::PlaceOfKey, Base::SourceOf;

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
      const float* add = SourceOf(place).q_add;
      if (!gathered || add != q_add) {
        machine_.EachWarp(lanes,
                          [&](auto& warp, auto& mine) { this->GatherQueries(warp, mine, add); });
      }
      gathered = true;
      q_add = add;
      AddBlock(lanes, place, Stage(stage));
      machine_.Sync();  // The next load may overwrite this stage.
      place = next;
    }
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) { this->Store(warp, mine); });
  }

 private:
  LONGVIEW_HD TileStage Stage(int stage) const {
    uint16_t* base = machine_.shared() + stage * 2 * Shared::kMatrix;
    return {base, base + Shared::kMatrix};
  }

  // ---- Keys and values into shared memory ----

  LONGVIEW_HD void LoadBlock(const BlockPlace& place, int stage) {
    const SpanSource& source = SourceOf(place);
    const TileStage to = Stage(stage);
    constexpr int kPieces = kD / 8;  // Pieces of one row.
    machine_.EachThread([&](int thread) {
      for (int i = thread; i < kBlockSlots * kPieces; i += kTileThreads) {
        const int row = i / kPieces, column = i % kPieces * 8;
        const KeyPlace at = PlaceOfKey(place, row);
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
    const int elements = PieceElements(row, column, D);
    if (pieces != 0) {
      machine_.CopyPiece(to, elements > 0 ? from + row + column : from, elements * 2);
      return;
    }
    for (int e = 0; e < 8; ++e) to[e] = e < elements ? from[row + column + e] : uint16_t{0};
  }

  // ---- One block of keys ----

  LONGVIEW_HD void AddBlock(Lanes& lanes, const BlockPlace& place, const TileStage& stage) {
    const Span& span = plan_.spans[place.span];
    const uint64_t keys = SpanKeys(plan_, span, place.block);
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) {
      this->SeeKeys(warp, mine, span, place.block, keys);
      if (!warp.Any(mine, [](const Lane& lane) { return SeesSome(lane); })) return;
      const bool full = warp.All(mine, [](const Lane& lane) { return SeesAll(lane); });
      const DottedPanel dotted =
          span.bias >= 0 ? MakeDotted(warp, mine, span, place.block) : DottedPanel{};
      Score(warp, mine, stage.k);
      warp.Each([&](int lane) { Scale(mine[lane]); });
      if (span.bias >= 0) {
        warp.Each(
            [&](int lane) { AddBias(mine[lane], warp.index(), lane, span, place.block, dotted); });
      }
      if (!full) warp.Each([&](int lane) { Mask(mine[lane], lane); });
      this->Weigh(warp, mine);
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
};

}  // namespace longview::kernels::cuda
