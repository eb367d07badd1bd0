#include "kernels/span/tile_bias.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "kernels/base/bfloat16.h"
#include "kernels/span/tile_rows.h"

namespace longview::kernels {
namespace {

constexpr float kLog2E = std::numbers::log2e_v<float>;

// Entry that row `i` reads for the key with span coordinate 0.
int64_t RowEntry(const Bias& bias, int i) {
  return bias.base + static_cast<int64_t>(bias.row_mul) * ((i + bias.row_phase) / bias.row_div);
}

void FillAddedRow(const float* table, int64_t entry, int key_mul, uint64_t mask, float* out) {
  const int first = std::countr_zero(mask);
  const int last = 63 - std::countl_zero(mask);
  const float* from = table + entry + static_cast<int64_t>(first) * key_mul;
  for (int j = first; j <= last; ++j, from += key_mul) {
    if ((mask >> j & 1) != 0) out[j] = *from * kLog2E;
  }
}

// Table rows of the keys that `mask` names as one float K panel; the others are zeros.
void GatherTableRows(const Table& table, int head, int64_t entry, int key_mul, uint64_t mask,
                     int Dk, int padded_dk, float* panel) {
  std::fill_n(panel, kBlockKeys * padded_dk, 0.0f);
  for (; mask != 0; mask &= mask - 1) {
    const int j = std::countr_zero(mask);
    const int64_t at =
        head * table.head_stride + (entry + static_cast<int64_t>(j) * key_mul) * table.entry_stride;
    float* out = panel + j / 16 * (padded_dk * 16) + j % 16;
    for (int d = 0; d < Dk; ++d) {
      out[d * 16] = table.dtype == DType::kFloat32
                        ? static_cast<const float*>(table.data)[at + d]
                        : BFloat16ToFloat(static_cast<const uint16_t*>(table.data)[at + d]);
    }
  }
}

}  // namespace

bool HasDotted(const Plan& plan) {
  return std::any_of(plan.biases.begin(), plan.biases.end(),
                     [](const Bias& bias) { return bias.kind == kDotted; });
}

void GatherDottedQueries(const Call& call, const Tile& tile, int head, const Table& table,
                         const BiasScratch& scratch) {
  const float* add = table.dot_add == nullptr ? nullptr : table.dot_add + head * call.Dk;
  GatherFloatQueries(call, tile, head, add, scratch.dk, scratch.q);
}

void FillBias(const VectorOps& ops, const Call& call, const Tile& tile, int head, const Bias& bias,
              int32_t key0, const uint64_t* masks, const BiasScratch& scratch) {
  const Table& table = call.tables[bias.id];
  int64_t gathered_entry = 0;
  uint64_t gathered_mask = 0;
  for (int i = 0; i < tile.rows; ++i) {
    if (masks[i] == 0) continue;
    const int64_t entry = RowEntry(bias, i) + static_cast<int64_t>(key0) * bias.key_mul;
    float* out = scratch.matrix + i * kBlockKeys;
    if (bias.kind == kAdded) {
      const float* data = static_cast<const float*>(table.data) + head * table.head_stride;
      FillAddedRow(data, entry, bias.key_mul, masks[i], out);
      continue;
    }
    // Rows of one group read the same table rows: gather them once.
    if (gathered_entry != entry || (masks[i] & ~gathered_mask) != 0) {
      GatherTableRows(table, head, entry, bias.key_mul, masks[i], call.Dk, scratch.dk,
                      scratch.panel);
      gathered_entry = entry;
      gathered_mask = masks[i];
    }
    ops.dots(scratch.q + i * scratch.dk, scratch.panel, scratch.dk, out);
    for (int j = 0; j < kBlockKeys; ++j) out[j] *= call.scale * kLog2E;
  }
}

}  // namespace longview::kernels
