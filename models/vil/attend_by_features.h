// Attention by positive random features (Choromanski et al. 2021, Performer): see
// kernels/pool/performer.h.
#pragma once

#include <cstdint>

#include "models/ops/backend.h"

namespace longview::models::ops {

struct AttendByFeatures {
  Rows qkv;  // T [rows, 3d]
  Rows out;  // T [rows, d]
  int heads;
  int features;
  const Table& projection;  // [features, d / heads]
  IndexRef offsets;         // [images + 1] rows
  int64_t longest;          // Rows of the largest image.

  OpWork Work() const { return {.attention = 4 * out.elements() * features}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace longview::models::ops
