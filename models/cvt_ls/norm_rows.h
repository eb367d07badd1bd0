// A LayerNorm over rows that are not of the residual stream.
#pragma once

#include "models/ops/backend.h"

namespace longview::models::ops {

// rows = norm(rows) in T. REQUIRES: dense rows on a device.
struct NormRows {
  Rows rows;
  const NormWeight& norm;

  OpWork Work() const { return {.rows = rows.elements()}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace longview::models::ops
