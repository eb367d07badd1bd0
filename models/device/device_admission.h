// Whether a model fits a device, decided before any of its memory is asked for. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longview::models {

// Bytes that LibTorch and CUDA take beside what models ask for: kernels, products' workspaces.
inline constexpr double kDeviceLibraryBytes = 512.0 * (1 << 20);

// One thing that a model asks a device's memory for.
struct DeviceClaim {
  std::string name;
  double bytes = 0;
};

// RESOURCE_EXHAUSTED, naming every part, the need and the limit, if they do not fit beside the
// libraries. `origin` begins the message.
absl::Status FitsDevice(const std::string& origin, const std::string& device,
                        std::span<const DeviceClaim> parts, int64_t free_bytes);

struct DeviceNeed {
  double weights = 0;
  double document = 0;  // The work on one document of `tokens` tokens, the longest there may be.
  int tokens = 0;
};

// How many documents of the longest kind a workspace may hold: as many as fit, at most `most`.
// RESOURCE_EXHAUSTED as FitsDevice if not one does.
absl::StatusOr<int> DocumentsAtOnce(const std::string& origin, const std::string& device,
                                    const DeviceNeed& need, int64_t free_bytes, int most);

}  // namespace longview::models
