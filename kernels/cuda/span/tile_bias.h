// Biases of the tensor-core forward (span_tile.h). A Dotted bias is a product too: of a
// warp's queries with the table rows that they read for a block of keys, few of them where
// neighbouring rows read shifted runs of the same ones.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/block_view.h"
#include "kernels/cuda/span/tile_lane.h"
#include "kernels/cuda/span/tile_rows.h"

namespace longview::kernels::cuda {

// Precomputed Dotted products of a warp; null: each is made where it is read.
struct DottedPanel {
  const float* products = nullptr;  // [16 rows][kDottedPitch]
  int64_t entry0 = 0;               // The table row of column 0.
};

template <class Machine, int kD, Element kElement>
class TileBias : protected TileRows<Machine, kD, kElement> {
  using Base = TileRows<Machine, kD, kElement>;

 protected:
  using Base::call_, Base::head_, Base::plan_, Base::tile_;
  using Base::EntryBias, Base::QueryPair;
  using Lane = TileLane<kD>;
  using Shared = TileShared<kD>;

  LONGVIEW_HD TileBias(Machine& machine, const PlanView& plan, const SpanCall& call,
                       const Item& item)
      : Base(plan, call, item), machine_(machine) {}

  // The products of a warp's queries with all table rows that they read for this block, where these
  // are few: neighbouring rows read shifted runs of the same ones.
  template <class Warp, class Mine>
  LONGVIEW_HD DottedPanel MakeDotted(Warp& warp, Mine& mine, const Span& span,
                                     int32_t block) const {
    const Bias& bias = plan_.biases[span.bias];
    const int first = warp.index() * kWarpRows;
    if (!TakesPanel(bias) || first >= tile_.rows) return {};
    const int last = first + kWarpRows < tile_.rows ? first + kWarpRows - 1 : tile_.rows - 1;
    // Entries rise or fall with the row, and with the key: the least is at a corner.
    const int64_t a = RowEntry(bias, first), b = RowEntry(bias, last);
    const int32_t key0 = block * kBlockSlots - span.key0;
    const int64_t lo = (a < b ? a : b) + (bias.key_mul > 0 ? key0 : -(key0 + kBlockSlots - 1));
    const SpanTable& table = call_.tables[bias.id];
    warp.Each([&](int lane) {
#pragma unroll
      for (int n = 0; n < kDottedEntries / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) mine[lane].dots[n][i] = 0.0f;
      }
    });
    const float* add = table.dot_add == nullptr ? nullptr : table.dot_add + head_ * call_.Dk;
#pragma unroll 1
    for (int d = 0; d < call_.Dk; d += 16) {
      warp.Each([&](int lane) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = first + lane / 4 + i % 2 * 8;
          mine[lane].p[0][i] = QueryPair(row, d + lane % 4 * 2 + i / 2 * 8, add);
        }
      });
#pragma unroll
      for (int n = 0; n < kDottedEntries / 8; ++n) {
        warp.Each([&](int lane) {
          const int64_t entry = lo + n * 8 + lane / 4;
          mine[lane].b[0] = TablePair(table, entry, d + lane % 4 * 2);
          mine[lane].b[1] = TablePair(table, entry, d + lane % 4 * 2 + 8);
        });
        warp.template Multiply<kElement>(
            mine, [&](Lane & r) -> auto& { return r.dots[n]; },
            [&](Lane & r) -> auto& { return r.p[0]; }, 0);
      }
    }
    float* products = reinterpret_cast<float*>(machine_.shared() + 4 * Shared::kMatrix) +
                      warp.index() * kWarpRows * Shared::kDottedPitch;
    warp.Sync();  // Products of the block before are still read.
    warp.Each([&](int lane) {
#pragma unroll
      for (int n = 0; n < kDottedEntries / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = lane / 4 + i / 2 * 8;
          products[row * Shared::kDottedPitch + n * 8 + lane % 4 * 2 + i % 2] =
              mine[lane].dots[n][i];
        }
      }
    });
    warp.Sync();
    return {products, lo};
  }

  // Adds what the span's bias says to the scores of a lane.
  LONGVIEW_HD void AddBias(Lane& r, int warp, int lane, const Span& span, int32_t block,
                           const DottedPanel& dotted) const {
    const Bias& bias = plan_.biases[span.bias];
    const int32_t key0 = block * kBlockSlots - span.key0;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const uint64_t keys = r.keys[pair];
      if (keys == 0) continue;
      const int row = warp * kWarpRows + lane / 4 + pair * 8;
      const int64_t entry0 = RowEntry(bias, row);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int key = n * 8 + lane % 4 * 2 + i;
          if ((keys >> key & 1) == 0) continue;
          const int64_t entry = entry0 + static_cast<int64_t>(bias.key_mul) * (key0 + key);
          r.s[n][2 * pair + i] += PanelBias(bias, entry, row, dotted) * kLog2E;
        }
      }
    }
  }

  Machine& machine_;

 private:
  // Do any 16 rows read few enough table rows? A property of the pattern: were it one of the rows
  // at hand, where a tile ends would decide how products are rounded.
  LONGVIEW_HD static bool TakesPanel(const Bias& bias) {
    const int64_t step = bias.row_mul < 0 ? -bias.row_mul : bias.row_mul;
    const int64_t steps = (kWarpRows - 1 + bias.row_div - 1) / bias.row_div;
    return bias.kind == kDotted && (bias.key_mul == 1 || bias.key_mul == -1) &&
           step * steps + kBlockSlots <= kDottedEntries;
  }

  // Two neighbouring elements of a table row; zeros outside of the table and its columns.
  LONGVIEW_HD uint32_t TablePair(const SpanTable& table, int64_t entry, int column) const {
    if (entry < 0 || entry >= table.entries || column >= call_.Dk) return 0;
    const int64_t at = head_ * table.head_stride + entry * table.entry_stride + column;
    const float low = LoadElement(table.data, table.element, at);
    const float high =
        column + 1 < call_.Dk ? LoadElement(table.data, table.element, at + 1) : 0.0f;
    return Machine::template Pack<kElement>(low, high);
  }

  // From the panel where there is one.
  LONGVIEW_HD float PanelBias(const Bias& bias, int64_t entry, int row,
                              const DottedPanel& dotted) const {
    if (dotted.products == nullptr) return EntryBias(bias, entry, row);
    const int64_t column = entry - dotted.entry0;
    return call_.scale * dotted.products[row % kWarpRows * Shared::kDottedPitch + column];
  }
};

}  // namespace longview::kernels::cuda
