#include "models/device/device_admission.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace longview::models {

absl::StatusOr<int> DocumentsAtOnce(const std::string& device, const DeviceNeed& need,
                                    int64_t free_bytes, int most) {
  constexpr double kMega = 1e6;
  const double left = static_cast<double>(free_bytes) - need.weights - kDeviceLibraryBytes;
  if (left >= need.document) {
    return static_cast<int>(std::min<double>(most, left / need.document));
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: needs %.0f MB (weights %.0f, libraries %.0f, one document of %d tokens %.0f), %.0f MB "
      "are free",
      device, (need.weights + need.document + kDeviceLibraryBytes) / kMega, need.weights / kMega,
      kDeviceLibraryBytes / kMega, need.tokens, need.document / kMega,
      static_cast<double>(free_bytes) / kMega));
}

}  // namespace longview::models
