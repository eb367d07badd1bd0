// Whether a model fits a device, decided before any of its memory is asked for. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace longview::models {

// Bytes that LibTorch and CUDA take beside what models ask for: kernels, products' workspaces.
inline constexpr double kDeviceLibraryBytes = 512.0 * (1 << 20);

struct DeviceNeed {
  double weights = 0;
  double document = 0;  // The work on one document of `tokens` tokens, the longest there may be.
  int tokens = 0;
};

// How many documents of the longest kind a workspace may hold: as many as fit, at most `most`.
// RESOURCE_EXHAUSTED, naming need and limit, if not one does.
absl::StatusOr<int> DocumentsAtOnce(const std::string& device, const DeviceNeed& need,
                                    int64_t free_bytes, int most);

}  // namespace longview::models
