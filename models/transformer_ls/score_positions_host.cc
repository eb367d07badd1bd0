#include <algorithm>
#include <cmath>

#include "kernels/dense/row_product.h"
#include "models/ops/host_backend.h"
#include "models/transformer_ls/score_positions.h"

namespace longview::models::ops {

OpWork ScorePositions::Work() const {
  OpWork work;
  for (const PositionScores& table : tables) {
    work.attention += q.elements() * static_cast<double>(table.stride);
  }
  return work;
}

// Units of a head's tables, one table behind the other.
void ScorePositions::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  // [tables, rows, width]
  float* const queries = scratch.Take<float>(std::ssize(tables) * q.count * q.width);
  if (!host.Runs(scratch)) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  const int64_t width = q.width, dim = width / heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  int64_t units = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const float* added = tables[t].table.rows.dot_add;
    float* to = queries + static_cast<int64_t>(t) * q.count * width;
    for (int64_t i = 0; i < q.count; ++i) {
      host.kernels().bias_widen(q.Row(i), added != nullptr ? added : host.Zeros(width), width,
                                to + i * width);
    }
    // Scaled before the products: once per channel of a row instead of once per entry.
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
    // Neighbouring rows that read the unit share a product; those whose limit is below it have
    // none.
    for (int64_t begin = 0, end = 0; begin < q.count; begin = end) {
      for (end = begin + 1; end < q.count && reads(end) == reads(begin);) ++end;
      if (!reads(begin)) continue;
      MultiplyRows(part, from + begin * width, width, end - begin, out + begin * scores.stride,
                   scores.stride, host.serial(), isa);
    }
  };
  ParallelRanges(host.pool(), heads * units, 4, [&](long from, long to) {
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

}  // namespace longview::models::ops
