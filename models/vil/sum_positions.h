// Keys and values that are sums of a map's rows by learned weights per row (Wang et al. 2020,
// Linformer: self-attention with linear complexity).
#pragma once

#include <cstdint>
#include <span>

#include "models/feature_maps/map_tokens.h"
#include "models/ops/backend.h"

namespace longview::models {

// The type of sums over a map's rows: fp32 on the host.
inline RowType SumType(const Backend& backend) {
  return backend.on_device() ? RowType::kCompute : RowType::kFloat;
}

namespace ops {

struct SumPositions {
  const Table& keys;  // [tokens, columns]
  const Table& values;
  IndexRef begins;  // [images + 1] rows
  std::span<const MapTokens> images;
  Rows from_keys, from_values;  // T [rows, d]
  Rows out;                     // SumType [images * columns, 2d]

  OpWork Work() const {
    return {.attention = 2.0 * from_keys.elements() * static_cast<double>(keys.width())};
  }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
