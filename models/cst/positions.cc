#include "models/cst/positions.h"

#include <algorithm>

#include "models/dense/rowwise.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// [rows, D] = table W^T for rows [first, first + rows) of the table.
std::vector<float> Projected(const std::vector<float>& table, int64_t first, int64_t rows,
                             const std::vector<float>& weight, int64_t width) {
  std::vector<float> result(static_cast<size_t>(rows * width));
  const VectorKernels& vectors = ChooseVectorKernels();
  ParallelRanges(TorchParallelFor(), rows, 1, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      vectors.dots(table.data() + (first + row) * width, weight.data(), width, width,
                   result.data() + row * width);
    }
  });
  return result;
}

// `entries` rows of the biases, with what `queries` and `keys` [entries, D] add; empty: nothing.
CstBias BiasRows(const CstProjections& projections, int64_t entries,
                 const std::vector<float>& queries, const std::vector<float>& keys) {
  const int64_t width = projections.width;
  CstBias bias;
  bias.width = 3 * width;
  for (int64_t entry = 0; entry < entries; ++entry) {
    bias.values.insert(bias.values.end(), projections.bias.begin(), projections.bias.end());
    float* row = bias.values.data() + entry * bias.width;
    for (int64_t d = 0; d < width; ++d) {
      if (!queries.empty()) row[d] += queries[static_cast<size_t>(entry * width + d)];
      if (!keys.empty()) row[width + d] += keys[static_cast<size_t>(entry * width + d)];
    }
  }
  return bias;
}

}  // namespace

const float* CstBias::Row(int64_t i) const {
  return values.data() + std::min(i, entries() - 1) * width;
}

CstBias TokenBias(const CstConfig& config, const CstProjections& projections,
                  const std::vector<float>& table) {
  if (!config.multi_scale()) return BiasRows(projections, 1, {}, {});
  const int64_t own = config.tiled ? 0 : config.extension;
  const auto project = [&](const std::vector<float>& weight) {
    return Projected(table, own, config.slice, weight, projections.width);
  };
  std::vector<float> keys;
  if (!config.relative_keys()) keys = project(projections.key);
  return BiasRows(projections, config.slice, project(projections.query), keys);
}

CstBias SliceBias(const CstConfig& config, const CstProjections& projections,
                  const std::vector<float>& table) {
  if (!config.multi_scale()) return BiasRows(projections, 1, {}, {});
  const int64_t slices = config.most_slices(), width = projections.width;
  std::vector<float> queries = Projected(table, 0, slices, projections.query, width);
  // The next slice's tokens ask: each row is the one behind it, the last one stays.
  if (config.shifted_before) std::copy(queries.begin() + width, queries.end(), queries.begin());
  return BiasRows(projections, slices, queries,
                  Projected(table, 0, slices, projections.key, width));
}

std::vector<float> KeyRows(const CstProjections& projections, const std::vector<float>& table) {
  const int64_t width = projections.width;
  return Projected(table, 0, static_cast<int64_t>(table.size()) / width, projections.key, width);
}

int64_t BoundaryRows(const CstConfig& config) {
  if (!config.zero_boundary || config.extension == 0) return 0;
  return !config.multi_scale() || config.relative_keys() ? 1 : 2 * config.extension;
}

std::vector<float> BoundaryKeys(const CstConfig& config, const CstBias& tokens) {
  const int64_t width = tokens.width / 3;
  std::vector<float> keys;
  const auto add = [&](int64_t place) {
    const float* key = tokens.Row(place) + width;
    keys.insert(keys.end(), key, key + width);
  };
  if (BoundaryRows(config) == 1) {
    add(0);
    return keys;
  }
  for (int64_t i = 0; i < config.extension; ++i) add(config.slice - config.extension + i);
  for (int64_t i = 0; i < config.extension; ++i) add(i);
  return keys;
}

std::vector<float> BoundaryValues(const CstConfig& config, const CstBias& tokens) {
  const int64_t width = tokens.width / 3;
  std::vector<float> values;
  for (int64_t i = 0; i < BoundaryRows(config); ++i) {
    const float* value = tokens.Row(0) + 2 * width;
    values.insert(values.end(), value, value + width);
  }
  return values;
}

}  // namespace longview::models
