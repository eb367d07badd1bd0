#include "kernels/span/tile_bias.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "kernels/span/tile_rows.h"

namespace longview::kernels {
namespace {

constexpr float kLog2E = std::numbers::log2e_v<float>;

// Entry that row `i` reads for the key with span coordinate 0.
int64_t RowEntry(const Bias& bias, int i) {
  return bias.base + static_cast<int64_t>(bias.row_mul) * ((i + bias.row_phase) / bias.row_div);
}

// out[j] = factor * from[j * step] for j in [first, last].
void CopyScaled(const float* from, int step, int first, int last, float factor, float* out) {
  if (step == 1) {
    for (int j = first; j <= last; ++j) out[j] = factor * from[j];
  } else if (step == -1) {
    for (int j = first; j <= last; ++j) out[j] = factor * from[-j];
  } else {
    for (int j = first; j <= last; ++j) out[j] = factor * from[int64_t{j} * step];
  }
}

// Entries between those of two keys that a row sees lie inside the table, holes or not.
void FillAddedRow(const float* table, int64_t entry, int key_mul, uint64_t mask, float* out) {
  const int first = std::countr_zero(mask);
  const int last = 63 - std::countl_zero(mask);
  CopyScaled(table + entry, key_mul, first, last, kLog2E, out);
}

// Packs table rows entry + j * step, j < 64, of one head as a float panel; those outside the
// table become zeros.
void PackTableRows(const VectorOps& ops, const Table& table, int Dk, int head, int64_t entry,
                   int step, const BiasScratch& scratch) {
  std::array<int32_t, kBlockKeys> rows;
  for (int j = 0; j < kBlockKeys; ++j) {
    const int64_t row = entry + int64_t{j} * step;
    rows[j] = row >= 0 && row < table.entries ? static_cast<int32_t>(row) : -1;
  }
  PackWork work;
  work.k = static_cast<const std::byte*>(table.data) +
           head * table.head_stride * static_cast<int64_t>(SizeOf(table.dtype));
  work.from_bfloat16 = table.dtype == DType::kBFloat16;
  work.k_row_stride = table.entry_stride;
  work.rows = rows.data();
  work.dk = Dk;
  work.padded_dk = scratch.dk;
  work.k_block = reinterpret_cast<std::byte*>(scratch.panel);
  ops.pack_float_keys(work);
}

// Entries that rows with a key in this block read for its 64 keys.
struct EntryRange {
  int64_t lo = std::numeric_limits<int64_t>::max();
  int64_t hi = std::numeric_limits<int64_t>::min();
};

EntryRange BlockEntries(const Bias& bias, int rows, int32_t key0, const uint64_t* masks) {
  EntryRange range;
  for (int i = 0; i < rows; ++i) {
    if (masks[i] == 0) continue;
    const int64_t first = RowEntry(bias, i) + int64_t{key0} * bias.key_mul;
    const int64_t last = first + int64_t{kBlockKeys - 1} * bias.key_mul;
    range.lo = std::min({range.lo, first, last});
    range.hi = std::max({range.hi, first, last});
  }
  return range;
}

// Neighbouring rows read shifted runs of the same entries: one product of the tile with all of
// them, read skewed.
void FillSkewed(const VectorOps& ops, const Table& table, int Dk, int rows, int head,
                const Bias& bias, int32_t key0, int64_t lo, float factor, const uint64_t* masks,
                const BiasScratch& scratch) {
  for (int half = 0; half < kDottedEntries; half += kBlockKeys) {
    PackTableRows(ops, table, Dk, head, lo + half, 1, scratch);
    ops.dots(scratch.q, rows, scratch.panel, scratch.dk, scratch.products + half, kDottedEntries);
  }
  for (int i = 0; i < rows; ++i) {
    if (masks[i] == 0) continue;
    const int64_t at = RowEntry(bias, i) + int64_t{key0} * bias.key_mul - lo;
    CopyScaled(scratch.products + i * kDottedEntries + at, bias.key_mul, 0, kBlockKeys - 1, factor,
               scratch.matrix + i * kBlockKeys);
  }
}

// Row by row, each with its own gathered entries; rows in a line that read the same share them.
void FillRowwise(const VectorOps& ops, const Table& table, int Dk, int rows, int head,
                 const Bias& bias, int32_t key0, float factor, const uint64_t* masks,
                 const BiasScratch& scratch) {
  int64_t packed = std::numeric_limits<int64_t>::min();
  for (int i = 0; i < rows; ++i) {
    if (masks[i] == 0) continue;
    const int64_t entry = RowEntry(bias, i) + int64_t{key0} * bias.key_mul;
    if (entry != packed) PackTableRows(ops, table, Dk, head, entry, bias.key_mul, scratch);
    packed = entry;
    float* out = scratch.matrix + i * kBlockKeys;
    ops.dots(scratch.q + i * scratch.dk, 1, scratch.panel, scratch.dk, out, kBlockKeys);
    for (int j = 0; j < kBlockKeys; ++j) out[j] *= factor;
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
  if (bias.kind == kAdded) {
    const float* data = static_cast<const float*>(table.data) + head * table.head_stride;
    for (int i = 0; i < tile.rows; ++i) {
      if (masks[i] == 0) continue;
      FillAddedRow(data, RowEntry(bias, i) + int64_t{key0} * bias.key_mul, bias.key_mul, masks[i],
                   scratch.matrix + i * kBlockKeys);
    }
    return;
  }
  const float factor = call.scale * kLog2E;
  const EntryRange range = BlockEntries(bias, tile.rows, key0, masks);
  // One product for the whole tile, where the entries that its rows read fit the panel.
  if (std::abs(bias.key_mul) == 1 && range.hi - range.lo < kDottedEntries) {
    FillSkewed(ops, table, call.Dk, tile.rows, head, bias, key0, range.lo, factor, masks, scratch);
  } else {
    FillRowwise(ops, table, call.Dk, tile.rows, head, bias, key0, factor, masks, scratch);
  }
}

}  // namespace longview::kernels
