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

void NormRows(const NormWeights& norm, int64_t width, std::vector<float>& rows) {
  const RowKernels& kernels = ChooseRowKernels(Compute::kFp32);
  const std::vector<float> no_bias(static_cast<size_t>(width));
  for (float* row = rows.data(); row < rows.data() + rows.size(); row += width) {
    kernels.residual_norm(row, nullptr, no_bias.data(), norm, width, nullptr);
  }
}

std::vector<float> ComparePair(const std::vector<float>& first, const std::vector<float>& second) {
  std::vector<float> features = first;
  features.insert(features.end(), second.begin(), second.end());
  for (size_t i = 0; i < first.size(); ++i) features.push_back(first[i] * second[i]);
  for (size_t i = 0; i < first.size(); ++i) features.push_back(first[i] - second[i]);
  return features;
}

std::vector<float> MeanOver(const EncoderSequence& sequence, const float* rows, int64_t width,
                            double divisor) {
  const std::vector<uint8_t>& roles = sequence.roles;
  const auto masked = std::count(roles.begin(), roles.end(), kernels::kMaskedToken);
  const double visible = static_cast<double>(roles.size()) - static_cast<double>(masked);
  std::vector<float> mean = MeanRows(rows, roles, static_cast<int>(width));
  for (float& value : mean) value = static_cast<float>(value * (visible / divisor));
  return mean;
}

std::vector<float> PoolRows(const EncoderItem& item, const float* rows, int64_t width) {
  if (item.pooling == Pooling::kCls) return {rows, rows + width};
  return MeanRows(rows, item.sequences[0].roles, static_cast<int>(width));
}

}  // namespace longview::models
