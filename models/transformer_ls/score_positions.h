// Scores of relative positions for the few rows of a decode step, made with a whole table at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/span/executor.h"
#include "models/ops/backend.h"

namespace longview::models {

// One layer's table of positions, rows that queries are multiplied with.
struct PositionTable {
  kernels::Table rows;  // Dotted: T [heads, entries, dim], with what is added to the query.
  // Host copy of `rows`, packed for products of few rows: `packed` entries each, a RowWeight of
  // `pack_type` per head, one behind the other.
  std::span<const std::byte* const> packs;
  int64_t packed = 0;
  kernels::DType pack_type = kernels::DType::kFloat32;
};

// Scores of positions, to be read as Added biases: out[head, row * stride + i] = scale * (query +
// added) . table[head, i] for the first limits[row] entries.
struct PositionScores {
  PositionTable table;
  IndexRef limits;     // [rows]
  int64_t stride = 0;  // Entries of a row in `out`; no limit is larger.
  Rows out;            // [heads, rows * stride] fp32
};

namespace ops {

// Dots are divided by the root of the head's width.
struct ScorePositions {
  Rows q;  // T, heads side by side.
  int heads;
  std::span<const PositionScores> tables;

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
