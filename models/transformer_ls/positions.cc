#include "models/transformer_ls/positions.h"

#include <algorithm>
#include <cmath>

#include "models/layers/span_rows.h"
#include "models/parallel.h"
#include "models/transformer_ls/score_positions.h"

namespace longview::models {
namespace {

// Packs of bfloat16 hold pairs of columns.
kernels::DType PackType(Compute compute, int64_t dim) {
  return dim % 2 == 0 ? SpanType(compute) : kernels::DType::kFloat32;
}

PositionTable DeviceTable(const TypedRows& rows, const LsLmConfig& config) {
  PositionTable table;
  table.rows.data = rows.data();
  table.rows.dtype = rows.dtype();
  table.rows.entries = static_cast<int32_t>(rows.rows() / config.heads);
  table.rows.head_stride = rows.rows() / config.heads * rows.width();
  table.rows.entry_stride = rows.width();
  return table;
}

}  // namespace

std::vector<float> PositionRows(const DenseLayer& linear, std::span<const float> frequencies,
                                int clamp, int64_t first, int64_t count,
                                const kernels::ParallelFor& pool) {
  const auto half = static_cast<int64_t>(frequencies.size());
  const int64_t width = 2 * half;
  std::vector<float> features(static_cast<size_t>(PaddedRows(count) * width));
  ParallelRanges(pool, count, 8, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      const int64_t id = clamp > 0 ? std::min<int64_t>(first + row, clamp) : first + row;
      float* feature = features.data() + row * width;
      for (int64_t i = 0; i < half; ++i) {
        const double phase = static_cast<double>(id) * frequencies[static_cast<size_t>(i)];
        feature[i] = static_cast<float>(std::sin(phase));
        feature[half + i] = static_cast<float>(std::cos(phase));
      }
    }
  });
  std::vector<float> rows(static_cast<size_t>(count * width));
  ForEachPanel(linear.linear, features.data(), count, [&](int64_t row, int64_t used, void* y) {
    const auto* values = static_cast<const float*>(y);
    for (int64_t i = 0; i < used * width; ++i) {
      rows[static_cast<size_t>(row * width + i)] =
          values[i] + linear.bias[static_cast<size_t>(i % width)];
    }
  });
  return rows;
}

std::vector<float> HeadRows(const std::vector<float>& rows, int heads, int dim) {
  const int64_t width = int64_t{heads} * dim, count = std::ssize(rows) / width;
  std::vector<float> by_head(rows.size());
  float* to = by_head.data();
  for (int head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < count; ++i, to += dim) {
      std::copy_n(rows.data() + i * width + head * dim, dim, to);
    }
  }
  return by_head;
}

RelativeTables::RelativeTables(const LsLmConfig& config, const LsLmWeights& weights)
    : config_(config), weights_(weights) {}

RelativeTables::RelativeTables(const LsLmConfig& config, const LsLmWeights& weights,
                               Compute compute, int64_t max_segment_ids,
                               const kernels::ParallelFor& pool)
    : config_(config),
      weights_(weights),
      compute_(compute),
      max_ids_(max_segment_ids),
      pool_(&pool),
      windows_(MakeTables(config.window, config.window)),
      segments_(MakeTables(max_segment_ids, kPackedIds)) {
  AddPack(windows_);
  for (int i = 0; i < config.layers; ++i) {
    Fill(weights.positions[static_cast<size_t>(i)].distances, config.clamp_distance, 0,
         config.window, i, windows_);
  }
}

RelativeTables::Tables RelativeTables::MakeTables(int64_t places, int64_t packed) const {
  Tables tables;
  tables.places = places;
  tables.packed = packed;
  tables.of_layer.resize(static_cast<size_t>(config_.layers));
  // Large blocks take no memory before they are written.
  const auto bytes = static_cast<size_t>(places * config_.width * ElementBytes(compute_));
  for (int i = 0; i < config_.layers; ++i) tables.rows.emplace_back(bytes);
  return tables;
}

size_t RelativeTables::LayerPackBytes(int64_t packed) const {
  const int dim = config_.head_dim();
  return static_cast<size_t>(config_.heads) *
         kernels::RowWeightBytes(packed, dim, PackType(compute_, dim));
}

void RelativeTables::AddPack(Tables& tables) const {
  const size_t bytes = LayerPackBytes(tables.packed);
  const auto layers = static_cast<size_t>(config_.layers);
  const Scratch& pack = tables.packs.emplace_back(Scratch::InHugePages(layers * bytes));
  for (size_t i = 0; i < layers; ++i) tables.of_layer[i].push_back(pack.data() + i * bytes);
}

void RelativeTables::Fill(const DenseLayer& linear, int clamp, int64_t first, int64_t count,
                          int layer, Tables& tables) const {
  const int64_t dim = config_.head_dim(), row_bytes = dim * ElementBytes(compute_);
  const std::vector<float> rows =
      HeadRows(PositionRows(linear, weights_.frequencies, clamp, first, count, *pool_),
               config_.heads, static_cast<int>(dim));
  const kernels::DType type = PackType(compute_, dim);
  const size_t pack_bytes = kernels::RowWeightBytes(tables.packed, dim, type);
  const auto index = static_cast<size_t>(layer);
  std::byte* const pack =
      tables.packs.back().data() + index * static_cast<size_t>(config_.heads) * pack_bytes;
  ParallelRanges(*pool_, config_.heads, 1, [&](long begin, long end) {
    for (long head = begin; head < end; ++head) {
      const float* from = rows.data() + head * count * dim;
      std::byte* to = tables.rows[index].data() + (head * tables.places + first) * row_bytes;
      ChooseRowKernels(compute_).narrow(from, count * dim, to);
      kernels::PackRowWeight({from, static_cast<size_t>(count * dim)}, count, dim, type,
                             pack + static_cast<size_t>(head) * pack_bytes);
    }
  });
}

void RelativeTables::Cover(int64_t ids) {
  if (pool_ == nullptr) return;
  while (covered_ < ids) {
    const int64_t count = std::min(max_ids_ - covered_, kPackedIds);
    AddPack(segments_);
    for (int i = 0; i < config_.layers; ++i) {
      Fill(weights_.positions[static_cast<size_t>(i)].segments, config_.clamp_segments, covered_,
           count, i, segments_);
    }
    covered_ += count;
  }
}

int64_t RelativeTables::SegmentBytes(int64_t ids) const {
  if (pool_ == nullptr) return 0;
  const int64_t packs = (std::min(ids, max_ids_) + kPackedIds - 1) / kPackedIds;
  const int64_t rows = std::min(packs * kPackedIds, max_ids_);
  return config_.layers * (rows * config_.width * ElementBytes(compute_) +
                           packs * static_cast<int64_t>(LayerPackBytes(kPackedIds)));
}

PositionTable RelativeTables::TableOf(const Tables& tables, int layer, int64_t entries) const {
  const auto index = static_cast<size_t>(layer);
  PositionTable table;
  table.rows.data = tables.rows[index].data();
  table.rows.dtype = SpanType(compute_);
  table.rows.entries = static_cast<int32_t>(entries);
  table.rows.head_stride = tables.places * config_.head_dim();
  table.rows.entry_stride = config_.head_dim();
  table.packs = tables.of_layer[index];
  table.packed = tables.packed;
  table.pack_type = PackType(compute_, config_.head_dim());
  return table;
}

PositionTable RelativeTables::Window(int layer) const {
  const LsLmLayer& weights = weights_.layers[static_cast<size_t>(layer)];
  PositionTable table = pool_ == nullptr ? DeviceTable(weights.window_positions, config_)
                                         : TableOf(windows_, layer, config_.window);
  table.rows.dot_add = weights.distance_add.floats();
  return table;
}

PositionTable RelativeTables::Segments(int layer) const {
  const LsLmLayer& weights = weights_.layers[static_cast<size_t>(layer)];
  return pool_ == nullptr ? DeviceTable(weights.segment_positions, config_)
                          : TableOf(segments_, layer, covered_);
}

}  // namespace longview::models
