#include "models/vision/device_room.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/device/device_admission.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// Typical pictures that a workspace holds at once, and the memory they may take: more work on the
// device at a time than that gains nothing.
constexpr size_t kMostPictures = 32;
constexpr double kPictureBytes = 2.0 * (1 << 30);

// Larger pictures than 16 megapixels are for a model that is alone on its host: lists and results
// are pinned memory.
constexpr int64_t kMostPixels = int64_t{1} << 24;

int64_t PixelsOf(ImageSize size) { return int64_t{size.height} * size.width; }

// About so many pixels in the shape of `of`.
ImageSize Scaled(ImageSize of, int64_t pixels) {
  const double factor = std::sqrt(static_cast<double>(pixels) / static_cast<double>(PixelsOf(of)));
  return {static_cast<int>(of.height * factor), static_cast<int>(of.width * factor)};
}

}  // namespace

absl::StatusOr<DeviceRunBytes> RoomForPictures(const std::string& origin, const Device& device,
                                               const PictureNeeds& needs) {
  const std::optional<DeviceRunBytes> one = needs.of(needs.typical);
  if (!one) return absl::InternalError(origin + ": the model does not take its own size");
  const DeviceClaim claims[] = {
      {"weights", static_cast<double>(needs.weight_bytes)},
      {absl::StrCat("one picture of ", needs.typical.height, " x ", needs.typical.width),
       static_cast<double>(one->device())}};
  const int64_t free_bytes = device.FreeBytes();
  RETURN_IF_ERROR(FitsDevice(origin, device.name(), claims, free_bytes));
  const double half = (static_cast<double>(free_bytes) - claims[0].bytes - kDeviceLibraryBytes) / 2;
  const double pictures = std::min(half, kPictureBytes) / claims[1].bytes;
  DeviceRunBytes room =
      one->Times(std::clamp(static_cast<size_t>(pictures), size_t{1}, kMostPictures));
  const int64_t most = std::min(needs.most_pixels, kMostPixels);
  for (int64_t pixels = PixelsOf(needs.typical); pixels < most;) {
    pixels = std::min(2 * pixels, most);
    const std::optional<DeviceRunBytes> larger = needs.of(Scaled(needs.typical, pixels));
    if (!larger || static_cast<double>(larger->device()) > half) break;
    DeviceRunBytes both = room;
    both.Include(*larger);
    if (static_cast<double>(both.device()) > half) break;
    room = both;
  }
  return room;
}

absl::Status CheckRoom(ImageSize size, const DeviceRunBytes& need, const Device& device,
                       const DeviceRunBytes& room) {
  if (need.Fits(room)) return absl::OkStatus();
  constexpr double kMega = 1e6;
  return absl::InvalidArgumentError(absl::StrFormat(
      "pixels of %d x %d need %.1f MB of %s and %.1f MB for results, the model's workspace has "
      "%.1f MB and %.1f MB",
      size.height, size.width, static_cast<double>(need.device()) / kMega, device.name(),
      static_cast<double>(need.results) / kMega, static_cast<double>(room.device()) / kMega,
      static_cast<double>(room.results) / kMega));
}

}  // namespace longview::models
