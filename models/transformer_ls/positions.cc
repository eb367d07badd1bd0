#include "models/transformer_ls/positions.h"

#include <algorithm>
#include <cmath>

#include "models/parallel.h"

namespace longview::models {
namespace {

constexpr int64_t kCoverStep = 256;

kernels::DType TableType(Compute compute) {
  return compute == Compute::kFp32 ? kernels::DType::kFloat32 : kernels::DType::kBFloat16;
}

}  // namespace

RelativeTables::RelativeTables(const LsLmConfig& config, const LsLmWeights& weights,
                               Compute compute, int64_t max_segment_ids,
                               const kernels::ParallelFor& pool)
    : config_(config),
      weights_(weights),
      compute_(compute),
      max_ids_(max_segment_ids),
      pool_(pool) {
  const auto row_bytes = static_cast<size_t>(config.width * ElementBytes(compute));
  for (const LsLmLayer& layer : weights.layers) {
    windows_.emplace_back(static_cast<size_t>(config.window) * row_bytes);
    Fill(layer.distances, config.clamp_distance, 0, config.window, windows_.back().data());
    // Large blocks take no memory before they are written.
    segments_.emplace_back(static_cast<size_t>(max_ids_) * row_bytes);
  }
}

void RelativeTables::Fill(const DenseLayer& linear, int clamp, int64_t first, int64_t last,
                          std::byte* table) {
  const int64_t width = config_.width, half = width / 2, rows = last - first;
  const RowKernels& kernels = ChooseRowKernels(compute_);
  std::vector<float> features(static_cast<size_t>(PaddedRows(rows) * width));
  ParallelRanges(pool_, rows, 8, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      const int64_t id = clamp > 0 ? std::min<int64_t>(first + row, clamp) : first + row;
      float* feature = features.data() + row * width;
      for (int64_t i = 0; i < half; ++i) {
        const double phase = static_cast<double>(id) * weights_.frequencies[i];
        feature[i] = static_cast<float>(std::sin(phase));
        feature[half + i] = static_cast<float>(std::cos(phase));
      }
    }
  });
  const int64_t row_bytes = width * ElementBytes(compute_);
  ForEachPanel(linear.linear, features.data(), rows, [&](int64_t row, int64_t count, void* y) {
    for (int64_t i = 0; i < count; ++i) {
      float* values = static_cast<float*>(y) + i * width;
      for (int64_t d = 0; d < width; ++d) values[d] += linear.bias[d];
      kernels.narrow(values, width, table + (first + row + i) * row_bytes);
    }
  });
}

void RelativeTables::Cover(int64_t ids) {
  if (ids <= covered_) return;
  const int64_t last = std::min(max_ids_, (ids + kCoverStep - 1) / kCoverStep * kCoverStep);
  for (size_t i = 0; i < segments_.size(); ++i) {
    Fill(weights_.layers[i].segments, config_.clamp_segments, covered_, last, segments_[i].data());
  }
  covered_ = last;
}

kernels::Table RelativeTables::TableOf(const Scratch& block, int64_t entries) const {
  kernels::Table table;
  table.data = block.data();
  table.dtype = TableType(compute_);
  table.entries = static_cast<int32_t>(entries);
  table.head_stride = config_.head_dim();
  table.entry_stride = config_.width;
  return table;
}

kernels::Table RelativeTables::Window(int layer) const {
  kernels::Table table = TableOf(windows_[layer], config_.window);
  table.dot_add = weights_.layers[layer].distance_add.data();
  return table;
}

kernels::Table RelativeTables::Segments(int layer) const {
  return TableOf(segments_[layer], covered_);
}

double RelativeTables::bytes() const {
  const double rows =
      static_cast<double>(windows_.size()) * static_cast<double>(config_.window + covered_);
  return rows * config_.width * static_cast<double>(ElementBytes(compute_));
}

}  // namespace longview::models
