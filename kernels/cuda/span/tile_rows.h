// A warp's 16 rows in registers, from queries to outputs: what the tensor-core forwards share,
// however their products are made (span_tile.h by mma.sync, span_warpgroup.h by wgmma). Both leave
// scores and sums in the same lanes.
//
// A machine offers powers of two and packing (Exp2, Pack), its warps Each(f) f(lane), QuadMax and
// QuadSum.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/block_view.h"
#include "kernels/cuda/span/state_math.h"
#include "kernels/cuda/span/tile_head.h"
#include "kernels/cuda/span/tile_lane.h"

namespace longview::kernels::cuda {

template <class Machine, int kD, Element kElement>
class TileRows : protected TileHead {
 protected:
  using Lane = RowLane<kD>;

  using TileHead::TileHead;

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

  // Two neighbouring elements of a query; zeros for rows and columns that are not there.
  LONGVIEW_HD uint32_t QueryPair(int row, int column, const float* add) const {
    if (row >= tile_.rows || column >= call_.Dk) return 0;
    const auto* q = static_cast<const uint16_t*>(call_.q) + QueryAt(row);
    const bool two = column + 1 < call_.Dk;
    if (add == nullptr) {
      if (two && call_.q_pairs != 0) return *reinterpret_cast<const uint32_t*>(q + column);
      return q[column] | (two ? static_cast<uint32_t>(q[column + 1]) << 16 : 0u);
    }
    const float low = FloatOf16(kElement, q[column]) + add[column];
    const float high = two ? FloatOf16(kElement, q[column + 1]) + add[column + 1] : 0.0f;
    return Machine::template Pack<kElement>(low, high);
  }

  // ---- Queries into registers ----

  template <class Warp, class Mine>
  LONGVIEW_HD void GatherQueries(Warp& warp, Mine& mine, const float* add) const {
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
  }

  // ---- Keys and scores of a block ----

  // Fills each lane's masks of the block's keys that its rows see; `keys`: those the span has.
  template <class Warp, class Mine>
  LONGVIEW_HD void SeeKeys(Warp& warp, Mine& mine, const Span& span, int32_t block,
                           uint64_t keys) const {
    warp.Each([&](int lane) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = warp.index() * kWarpRows + lane / 4 + i * 8;
        mine[lane].keys[i] =
            row < tile_.rows ? RowKeys(plan_, span, block, keys, row) : uint64_t{0};
      }
    });
  }
  LONGVIEW_HD static bool SeesSome(const Lane& lane) { return (lane.keys[0] | lane.keys[1]) != 0; }
  LONGVIEW_HD static bool SeesAll(const Lane& lane) {
    return (lane.keys[0] & lane.keys[1]) == kAllKeys;
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
        // A row that has seen no key yet is all zero; any finite reference keeps it so.
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

  // ---- Out ----

  template <class Warp, class Mine>
  LONGVIEW_HD void Store(Warp& warp, Mine& mine) const {
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
  }

 private:
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
