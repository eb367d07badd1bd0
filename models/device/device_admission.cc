#include "models/device/device_admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/status_macros.h"

namespace longview::models {

absl::Status FitsDevice(const std::string& origin, const std::string& device,
                        std::span<const DeviceClaim> parts, int64_t free_bytes) {
  constexpr double kMega = 1e6;
  double need = kDeviceLibraryBytes;
  std::string listing;
  for (const DeviceClaim& part : parts) {
    need += part.bytes;
    absl::StrAppendFormat(&listing, "%s %.0f, ", part.name, part.bytes / kMega);
  }
  if (need <= static_cast<double>(free_bytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s on %s: needs %.0f MB (%slibraries %.0f), %.0f MB are free", origin, device, need / kMega,
      listing, kDeviceLibraryBytes / kMega, static_cast<double>(free_bytes) / kMega));
}

absl::StatusOr<int> DocumentsAtOnce(const std::string& origin, const std::string& device,
                                    const DeviceNeed& need, int64_t free_bytes, int most) {
  const DeviceClaim parts[] = {
      {"weights", need.weights},
      {absl::StrCat("one document of ", need.tokens, " tokens"), need.document}};
  RETURN_IF_ERROR(FitsDevice(origin, device, parts, free_bytes));
  const double left = static_cast<double>(free_bytes) - need.weights - kDeviceLibraryBytes;
  return static_cast<int>(std::min<double>(most, left / need.document));
}

}  // namespace longview::models
