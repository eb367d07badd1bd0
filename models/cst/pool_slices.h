// A document's slices, each pooled to one row channel by channel (CST, section 3).
#pragma once

#include <span>

#include "kernels/pool/slice_pool.h"
#include "kernels/pool/slice_rows.h"
#include "models/ops/backend.h"

namespace longview::models {

// Staged slices of documents, in the memory that the backend reads.
struct SlicesRef {
  const kernels::SliceRows* data = nullptr;
  const uint8_t* visible = nullptr;  // [rows], 0 = left out.
  int64_t count = 0;
};
SlicesRef StageSlices(Backend& backend, std::span<const kernels::SliceRows> slices,
                      std::span<const uint8_t> visible);

// Staged parts of slices, in the memory that the backend reads.
struct PartsRef {
  const kernels::SlicePart* data = nullptr;
  int64_t count = 0;
};
PartsRef StageParts(Backend& backend, std::span<const kernels::SlicePart> parts);

namespace ops {

// out[s] = the visible rows of slice s pooled; zeros without any.
struct PoolSlices {
  Rows from;  // T
  SlicesRef slices;
  kernels::SlicePooling pooling;
  Rows out;  // T [slices, width]

  OpWork Work() const { return {.attention = from.elements()}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// sums[i] = the rows of part i pooled; a part that does not begin its slice goes on from what
// sums[i] holds.
struct PoolParts {
  Rows from;  // T
  PartsRef parts;
  kernels::SlicePooling pooling;
  Rows sums;  // [parts, width] fp32

  OpWork Work() const { return {.attention = from.elements()}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
