// Global tokens that see a map which comes slice by slice (layers/open_rows.h). The host's alone; a
// device has room for whole maps.
#pragma once

#include <cstdint>
#include <optional>

#include "models/layers/open_rows.h"
#include "models/ops/backend.h"

namespace longview::models::ops {

// From here on `open` is of these queries: T [g, d].
struct BeginOpenRows {
  std::optional<OpenRows>& open;
  OpenRowsShape shape;
  OpenRowsBuffers buffers;
  Rows queries;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// Shows the open global rows these keys and values, T [.., d].
struct AppendOpenRows {
  std::optional<OpenRows>& open;
  int64_t rows;  // g
  Rows keys;
  Rows values;
  OpenRowsBias bias;

  OpWork Work() const { return {.attention = 2 * keys.elements() * static_cast<double>(rows)}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// out = what they made of all keys. T [g, d]
struct FinishOpenRows {
  std::optional<OpenRows>& open;
  Rows out;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace longview::models::ops
