#include "models/encoder/head_rows.h"

#include <algorithm>

#include "models/text/scores.h"

namespace longview::models {

HeadRows RowsOf(const std::vector<float>& values, int64_t width) {
  HeadRows rows;
  for (size_t at = 0; at < values.size(); at += static_cast<size_t>(width)) {
    rows.push_back(values.data() + at);
  }
  return rows;
}

std::vector<float> ApplyHead(const DenseLayer& layer, const HeadRows& rows, Activation activation,
                             const kernels::ParallelFor& pool) {
  std::vector<float> out(rows.size() * static_cast<size_t>(layer.out()));
  ApplyToRows(layer, rows, activation, pool, out.data());
  return out;
}

HeadRows PickRows(const HeadInput& input, std::span<const int32_t> positions, int64_t width) {
  const std::vector<int32_t>& wanted = input.item->sequences[0].wanted;
  HeadRows rows;
  for (const int32_t position : positions) {
    const auto place = std::lower_bound(wanted.begin(), wanted.end(), position) - wanted.begin();
    rows.push_back(input.rows[0] + place * width);
  }
  return rows;
}

std::vector<float> PoolRows(const EncoderItem& item, const float* rows, int64_t width) {
  if (item.pooling == Pooling::kCls) return {rows, rows + width};
  return MeanRows(rows, item.sequences[0].roles, static_cast<int>(width));
}

}  // namespace longview::models
