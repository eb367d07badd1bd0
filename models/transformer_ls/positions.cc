#include "models/transformer_ls/positions.h"

#include <algorithm>
#include <cmath>

#include "models/parallel.h"

namespace longview::models {
namespace {

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
  window_packs_ = MakePacks(config.window);
  for (int i = 0; i < config.layers; ++i) {
    windows_.push_back(MakeRows(config.window));
    Fill(i, weights.positions[i].distances, config.clamp_distance, 0, config.window, windows_[i],
         window_packs_);
    // Large blocks take no memory before they are written.
    segments_.push_back(MakeRows(max_ids_));
  }
}

RelativeTables::Rows RelativeTables::MakeRows(int64_t places) const {
  return {Scratch(static_cast<size_t>(places * config_.width * ElementBytes(compute_))), places};
}

RelativeTables::Packs RelativeTables::MakePacks(int64_t entries) const {
  const int dim = config_.head_dim();
  const size_t bytes = kernels::RowWeightBytes(entries, dim, PackType(compute_, dim));
  const auto count = static_cast<size_t>(config_.layers) * static_cast<size_t>(config_.heads);
  return {Scratch::InHugePages(count * bytes), entries};
}

kernels::RowWeight RelativeTables::WeightOf(const Packs& packs, int layer, int head) const {
  const int dim = config_.head_dim();
  const kernels::DType type = PackType(compute_, dim);
  const size_t bytes = kernels::RowWeightBytes(packs.entries, dim, type);
  const auto index = static_cast<size_t>(layer) * static_cast<size_t>(config_.heads) + head;
  return {packs.memory.data() + index * bytes, type, packs.entries, dim};
}

void RelativeTables::Fill(int layer, const DenseLayer& linear, int clamp, int64_t first,
                          int64_t count, const Rows& table, const Packs& packs) {
  const int64_t width = config_.width, half = width / 2, rows = count;
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
  Store(layer, filled, first, rows, table, packs);
}

void RelativeTables::Store(int layer, const std::vector<float>& values, int64_t first,
                           int64_t count, const Rows& table, const Packs& packs) {
  const int64_t width = config_.width, dim = config_.head_dim();
  const int64_t row_bytes = dim * ElementBytes(compute_);
  const RowKernels& kernels = ChooseRowKernels(compute_);
  ParallelRanges(pool_, config_.heads, 1, [&](long begin, long end) {
    std::vector<float> of_head(static_cast<size_t>(count * dim));
    for (long head = begin; head < end; ++head) {
      for (int64_t i = 0; i < count; ++i) {
        const float* row = values.data() + i * width + head * dim;
        kernels.narrow(row, dim,
                       table.memory.data() + (head * table.places + first + i) * row_bytes);
        std::copy_n(row, dim, of_head.data() + i * dim);
      }
      const kernels::RowWeight pack = WeightOf(packs, layer, static_cast<int>(head));
      kernels::PackRowWeight(of_head, count, dim, pack.dtype, const_cast<std::byte*>(pack.data));
    }
  });
}

void RelativeTables::Cover(int64_t ids) {
  while (covered_ < ids) {
    const int64_t count = std::min(max_ids_ - covered_, kPackedIds);
    segment_packs_.push_back(MakePacks(kPackedIds));
    for (int i = 0; i < config_.layers; ++i) {
      Fill(i, weights_.positions[i].segments, config_.clamp_segments, covered_, count, segments_[i],
           segment_packs_.back());
    }
    covered_ += count;
  }
}

kernels::Table RelativeTables::TableOf(const Rows& rows, int64_t entries) const {
  kernels::Table table;
  table.data = rows.memory.data();
  table.dtype = TableType(compute_);
  table.entries = static_cast<int32_t>(entries);
  table.head_stride = rows.places * config_.head_dim();
  table.entry_stride = config_.head_dim();
  return table;
}

kernels::Table RelativeTables::Window(int layer) const {
  kernels::Table table = TableOf(windows_[layer], config_.window);
  table.dot_add = weights_.positions[layer].distance_add.data();
  return table;
}

kernels::Table RelativeTables::Segments(int layer) const {
  return TableOf(segments_[layer], covered_);
}

kernels::RowWeight RelativeTables::WindowWeight(int layer, int head) const {
  return WeightOf(window_packs_, layer, head);
}

kernels::RowWeight RelativeTables::SegmentWeight(int layer, int head, int64_t first) const {
  return WeightOf(segment_packs_[first / kPackedIds], layer, head);
}

double RelativeTables::bytes() const {
  const double rows =
      static_cast<double>(windows_.size()) * static_cast<double>(config_.window + covered_);
  return 2 * rows * config_.width * static_cast<double>(ElementBytes(compute_));
}

}  // namespace longview::models
