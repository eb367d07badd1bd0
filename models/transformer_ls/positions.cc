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

// Packs of bfloat16 hold pairs of columns.
kernels::DType PackType(Compute compute, int64_t dim) {
  return dim % 2 == 0 ? TableType(compute) : kernels::DType::kFloat32;
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
  for (const LsLmLayer& layer : weights.layers) {
    windows_.push_back(MakeRows(config.window));
    Fill(layer.distances, config.clamp_distance, 0, config.window, windows_.back());
    // Large blocks take no memory before they are written.
    segments_.push_back(MakeRows(max_ids_));
  }
}

RelativeTables::Rows RelativeTables::MakeRows(int64_t entries) const {
  const int64_t places = (entries + kernels::kRowUnit - 1) / kernels::kRowUnit * kernels::kRowUnit;
  const int dim = config_.head_dim();
  const size_t pack = kernels::RowWeightBytes(places, dim, PackType(compute_, dim));
  return {Scratch(static_cast<size_t>(places * config_.width * ElementBytes(compute_))),
          Scratch(static_cast<size_t>(config_.heads) * pack), places};
}

void RelativeTables::Fill(const DenseLayer& linear, int clamp, int64_t first, int64_t last,
                          const Rows& table) {
  const int64_t width = config_.width, half = width / 2, rows = last - first;
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
  std::vector<float> filled(static_cast<size_t>(rows * width));
  ForEachPanel(linear.linear, features.data(), rows, [&](int64_t row, int64_t count, void* y) {
    const auto* values = static_cast<const float*>(y);
    for (int64_t i = 0; i < count * width; ++i) {
      filled[row * width + i] = values[i] + linear.bias[i % width];
    }
  });
  Store(filled, first, rows, table);
}

void RelativeTables::Store(const std::vector<float>& values, int64_t first, int64_t rows,
                           const Rows& table) {
  const int64_t width = config_.width, dim = config_.head_dim();
  const int64_t row_bytes = dim * ElementBytes(compute_);
  const kernels::DType packed = PackType(compute_, dim);
  const RowKernels& kernels = ChooseRowKernels(compute_);
  const size_t pack = kernels::RowWeightBytes(table.places, dim, packed);
  const size_t before = kernels::RowWeightBytes(first, dim, packed);
  ParallelRanges(pool_, config_.heads, 1, [&](long begin, long end) {
    std::vector<float> of_head(static_cast<size_t>(rows * dim));
    for (long head = begin; head < end; ++head) {
      for (int64_t i = 0; i < rows; ++i) {
        const float* row = values.data() + i * width + head * dim;
        kernels.narrow(row, dim, table.rows.data() + (head * table.places + first + i) * row_bytes);
        std::copy_n(row, dim, of_head.data() + i * dim);
      }
      kernels::PackRowWeight(of_head, rows, dim, packed, table.packs.data() + head * pack + before);
    }
  });
}

void RelativeTables::Cover(int64_t ids) {
  if (ids <= covered_) return;
  const int64_t last = std::min(max_ids_, (ids + kCoverStep - 1) / kCoverStep * kCoverStep);
  for (size_t i = 0; i < segments_.size(); ++i) {
    Fill(weights_.layers[i].segments, config_.clamp_segments, covered_, last, segments_[i]);
  }
  covered_ = last;
}

kernels::Table RelativeTables::TableOf(const Rows& rows, int64_t entries) const {
  kernels::Table table;
  table.data = rows.rows.data();
  table.dtype = TableType(compute_);
  table.entries = static_cast<int32_t>(entries);
  table.head_stride = rows.places * config_.head_dim();
  table.entry_stride = config_.head_dim();
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

kernels::RowWeight RelativeTables::WeightOf(const Rows& rows, int head, int64_t entries) const {
  const int dim = config_.head_dim();
  const kernels::DType packed = PackType(compute_, dim);
  const size_t pack = kernels::RowWeightBytes(rows.places, dim, packed);
  return {rows.packs.data() + static_cast<size_t>(head) * pack, packed, entries, dim};
}

kernels::RowWeight RelativeTables::WindowWeight(int layer, int head) const {
  return WeightOf(windows_[layer], head, config_.window);
}

kernels::RowWeight RelativeTables::SegmentWeight(int layer, int head) const {
  return WeightOf(segments_[layer], head, covered_);
}

double RelativeTables::bytes() const {
  const double rows =
      static_cast<double>(windows_.size()) * static_cast<double>(config_.window + covered_);
  return 2 * rows * config_.width * static_cast<double>(ElementBytes(compute_));
}

}  // namespace longview::models
