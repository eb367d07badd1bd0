// The forward on Hopper: what one thread block does with one item, a tile of 64 query rows for one
// head, with wgmma and TMA. The same walk, softmax and order of sums as span_tile.h, the same lanes
// (tile_rows.h); other products.
//
// Four warps of 16 rows each, a warpgroup, compute; a fifth loads. It walks the same blocks ahead
// of them into a ring of stages, each a block's keys and values in swizzled panels
// (swizzled_tile.h). Two barriers a stage say whose turn it is: Full, when a block has come, and
// Empty, when its products are made.
//
// A block whose 64 rows lie one behind the other comes as boxes, a few instructions of one lane. Of
// any other (the end of a sequence, gathered and dilated tokens, pages in part) each lane copies
// pieces of 16 bytes, zeros where there is no key. Both leave the same bytes wherever a row sees
// them.
//
// The program is written once, over a machine: WarpgroupMachine (warpgroup_machine.cuh) is a thread
// block of a GPU of compute capability 9.0, the tests' EmulatedWarpgroup runs it on a CPU. A
// machine offers:
//   InitBarriers(f)         f(init); init(barrier, arrivals) for each; then all threads see them
//   Split(load, attend)     load(loader) in one warp, attend(group) in four, side by side
//   Address(offset)         of shared memory, as a matrix descriptor names it
// both roles: Await(barrier, parity): until the barrier's phase of that parity is over;
// a loader: Each(f), Every(test); CopyBox, CopyPiece, StoreElement into shared memory at an offset;
//   ArriveWithBoxes(barrier, bytes), ArriveWithPieces, ArriveWithStores: all 32 lanes arrive, and
//   the phase ends when what they copied has come; AwaitPieces();
// a group: EachWarp(lanes, f), f(warp, lanes of that warp), warps as in tile_rows.h;
//   AcquireShared() before products of what copies of pieces or stores wrote;
//   BeginProducts, Multiply, EndProducts; Release(barrier): each warp arrives.
//
// Bits: as in span_tile.h. A score is one chain over d in steps of 16, a sum one over keys.
//
// After Shah et al., FlashAttention-3 (arXiv 2407.08608), section 3.1.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/block_view.h"
#include "kernels/cuda/span/swizzled_tile.h"
#include "kernels/cuda/span/tensor_box.h"
#include "kernels/cuda/span/tile_rows.h"

namespace longview::kernels::cuda {

inline constexpr int kWarpgroupThreads = kTileThreads + 32;

// Shared memory of the program for heads padded to kD, 64 or 128: stages, then barriers. As many
// stages as leave room for kBlocks blocks on a multiprocessor.
template <int kD>
struct WarpgroupShared {
  static constexpr int kMatrix = kD / kPanelColumns * kPanelBytes;  // Bytes of one K or V block.
  static constexpr int kStage = 2 * kMatrix;
  static constexpr int kStages = kD == 64 ? 4 : 3;
  static constexpr int kBlocks = kD == 64 ? 3 : 2;
  static constexpr int kBarriers = 2 * kStages;
  static constexpr int kBarriersAt = kStages * kStage;
  static constexpr int kBytes = kBarriersAt + kBarriers * 8;
};

template <class Machine, int kD, Element kElement>
class SpanWarpgroup : private TileRows<Machine, kD, kElement> {
  using Base = TileRows<Machine, kD, kElement>;
  using Base::call_, Base::kv_head_, Base::plan_, Base::tile_;
  using Base::Clear, Base::Mask, Base::Scale, Base::SeesAll;
  using Base::PieceElements, Base::PlaceOfKey, Base::SourceOf;

 public:
  static constexpr int kThreads = kWarpgroupThreads;
  using Lane = RowLane<kD>;
  using Lanes = typename Machine::template Lanes<Lane>;
  using Shared = WarpgroupShared<kD>;

  // Borrows all but the item. `boxes`: of the call; the machine knows the tensors behind them.
  LONGVIEW_HD SpanWarpgroup(Machine& machine, const PlanView& plan, const SpanCall& call,
                            const SourceBoxes& boxes, const Item& item)
      : Base(plan, call, item), machine_(machine), boxes_(boxes) {}

  LONGVIEW_HD void Run(Lanes& lanes) {
    machine_.InitBarriers([](auto init) {
      for (int stage = 0; stage < Shared::kStages; ++stage) {
        init(Full(stage), 32);
        init(Empty(stage), kTileWarps);
      }
    });
    machine_.Split([&](auto& loader) { Load(loader); }, [&](auto& group) { Attend(group, lanes); });
  }

 private:
  LONGVIEW_HD static constexpr int Full(int stage) { return stage; }
  LONGVIEW_HD static constexpr int Empty(int stage) { return Shared::kStages + stage; }

  // A stage of the ring, and the parity of the phase in which it is filled.
  struct Turn {
    int stage = 0;
    uint32_t parity = 0;

    LONGVIEW_HD void Advance() {
      if (++stage < Shared::kStages) return;
      stage = 0;
      parity ^= 1;
    }
  };

  // ---- The loader ----

  template <class Loader>
  LONGVIEW_HD void Load(Loader& loader) const {
    BlockWalk walk(plan_, tile_);
    Turn turn;
    for (BlockPlace place = walk.Next(); place.span >= 0; place = walk.Next(), turn.Advance()) {
      const int64_t row = BoxRow(loader, place);
      // The first round finds every stage empty: the phase before a barrier's first counts as over.
      loader.Await(Empty(turn.stage), turn.parity ^ 1);
      if (row >= 0) {
        LoadBoxes(loader, place, static_cast<int32_t>(row), turn.stage);
      } else {
        LoadPieces(loader, place, turn.stage);
      }
    }
    loader.AwaitPieces();  // A thread that is gone copies nothing.
  }

  // The row at which boxes read the block's keys and values; -1 where they cannot.
  template <class Loader>
  LONGVIEW_HD int64_t BoxRow(Loader& loader, const BlockPlace& place) const {
    const Span& span = plan_.spans[place.span];
    const SpanSource& source = SourceOf(place);
    if (boxes_.k[span.source] < 0 || boxes_.v[span.source] < 0) return -1;
    const int64_t slot0 = static_cast<int64_t>(place.block) * kBlockSlots;
    if (source.layout != Layout::kRows) {
      // Slots of a cache that the span does not name may hold anything.
      if (span.key0 > slot0 || slot0 + kBlockSlots > static_cast<int64_t>(span.key0) + span.keys) {
        return -1;
      }
      const int64_t row = CellOfBlock(source, tile_.seq, place.block, kv_head_) * kBlockSlots;
      return row + kBlockSlots <= INT32_MAX ? row : -1;
    }
    const int32_t* rows = plan_.slot_rows + plan_.sources[span.source].slot_row0 + slot0;
    const int32_t first = rows[0];
    const bool run = loader.Every([&](int lane) {
      return rows[lane] == first + lane && rows[lane + 32] == first + lane + 32;
    });
    return run ? first : -1;
  }

  template <class Loader>
  LONGVIEW_HD void LoadBoxes(Loader& loader, const BlockPlace& place, int32_t row,
                             int stage) const {
    const int source = plan_.spans[place.span].source;
    const int head = call_.sources[source].layout == Layout::kRows ? kv_head_ : 0;
    const int barrier = Full(stage);
    loader.ArriveWithBoxes(barrier, Shared::kStage);
#pragma unroll
    for (int column = 0; column < kD; column += kPanelColumns) {
      const int to = stage * Shared::kStage + column / kPanelColumns * kPanelBytes;
      loader.CopyBox(to, boxes_.k[source], column, head, row, barrier);
      loader.CopyBox(to + Shared::kMatrix, boxes_.v[source], column, head, row, barrier);
    }
  }

  template <class Loader>
  LONGVIEW_HD void LoadPieces(Loader& loader, const BlockPlace& place, int stage) const {
    const SpanSource& source = SourceOf(place);
    constexpr int kPieces = kD / 8;  // Pieces of one row.
    loader.Each([&](int lane) {
#pragma unroll 4
      for (int i = lane; i < kBlockSlots * kPieces; i += 32) {
        const int row = i / kPieces, column = i % kPieces * 8;
        const KeyPlace at = PlaceOfKey(place, row);
        const int to = stage * Shared::kStage + SwizzledPiece(row, column);
        LoadPiece(loader, source.k, at.k, column, call_.Dk, source.pieces, to);
        LoadPiece(loader, source.v, at.v, column, call_.Dv, source.pieces, to + Shared::kMatrix);
      }
    });
    if (source.pieces != 0) {
      loader.ArriveWithPieces(Full(stage));
    } else {
      loader.ArriveWithStores(Full(stage));
    }
  }

  // Eight elements of a row from `column` on; zeros beyond D and for a row at -1.
  template <class Loader>
  LONGVIEW_HD static void LoadPiece(Loader& loader, const void* data, int64_t row, int column,
                                    int D, int pieces, int to) {
    const auto* from = static_cast<const uint16_t*>(data);
    const int elements = PieceElements(row, column, D);
    if (pieces != 0) {
      loader.CopyPiece(to, elements > 0 ? from + row + column : from, elements * 2);
      return;
    }
    for (int e = 0; e < 8; ++e) {
      loader.StoreElement(to + 2 * e, e < elements ? from[row + column + e] : uint16_t{0});
    }
  }

  // ---- The warpgroup ----

  template <class Group>
  LONGVIEW_HD void Attend(Group& group, Lanes& lanes) const {
    group.EachWarp(
        lanes, [&](auto& warp, auto& mine) { warp.Each([&](int lane) { Clear(mine[lane]); }); });
    BlockWalk walk(plan_, tile_);
    Turn turn;
    const float* q_add = nullptr;
    bool gathered = false;
    for (BlockPlace place = walk.Next(); place.span >= 0; place = walk.Next(), turn.Advance()) {
      const float* add = SourceOf(place).q_add;
      if (!gathered || add != q_add) {
        group.EachWarp(lanes,
                       [&](auto& warp, auto& mine) { this->GatherQueries(warp, mine, add); });
      }
      gathered = true;
      q_add = add;
      AddBlock(group, lanes, place, turn);
    }
    group.EachWarp(lanes, [&](auto& warp, auto& mine) { this->Store(warp, mine); });
  }

  template <class Group>
  LONGVIEW_HD void AddBlock(Group& group, Lanes& lanes, const BlockPlace& place,
                            const Turn& turn) const {
    const Span& span = plan_.spans[place.span];
    const uint64_t keys = SpanKeys(plan_, span, place.block);
    group.EachWarp(
        lanes, [&](auto& warp, auto& mine) { this->SeeKeys(warp, mine, span, place.block, keys); });
    group.Await(Full(turn.stage), turn.parity);
    group.AcquireShared();
    const uint32_t stage = machine_.Address(turn.stage * Shared::kStage);
    Score(group, lanes, stage);
    group.EachWarp(lanes, [&](auto& warp, auto& mine) {
      warp.Each([&](int lane) { Scale(mine[lane]); });
      // Placeholders of missing keys become no score, whatever they hold.
      if (!warp.All(mine, [](const Lane& lane) { return SeesAll(lane); })) {
        warp.Each([&](int lane) { Mask(mine[lane], lane); });
      }
      this->Weigh(warp, mine);
    });
    Sum(group, lanes, stage + Shared::kMatrix);
    group.Release(Empty(turn.stage));
  }

  // s = q . k
  template <class Group>
  LONGVIEW_HD static void Score(Group& group, Lanes& lanes, uint32_t k) {
    const auto sum = [](Lane & r) -> auto& { return r.s; };
    group.BeginProducts(
        lanes, sum, [](Lane & r) -> auto& { return r.q; });
#pragma unroll
    for (int step = 0; step < kD / 16; ++step) {
      group.template Multiply<kElement, kBlockSlots, false>(
          lanes, sum, [&](Lane & r) -> auto& { return r.q[step]; }, KeysOperand(k, step), step > 0);
    }
    group.EndProducts(lanes, sum);
  }

  // o += p . v
  template <class Group>
  LONGVIEW_HD static void Sum(Group& group, Lanes& lanes, uint32_t v) {
    const auto sum = [](Lane & r) -> auto& { return r.o; };
    group.BeginProducts(
        lanes, sum, [](Lane & r) -> auto& { return r.p; });
#pragma unroll
    for (int step = 0; step < kBlockSlots / 16; ++step) {
      group.template Multiply<kElement, kD, true>(
          lanes, sum, [&](Lane & r) -> auto& { return r.p[step]; }, ValuesOperand(v, step), true);
    }
    group.EndProducts(lanes, sum);
  }

  Machine& machine_;
  const SourceBoxes& boxes_;
};

}  // namespace longview::kernels::cuda
