// The workspace of an image model on a device, decided before any of its memory is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/device/device_workspace.h"
#include "models/image/pipeline.h"

namespace longview::models {

struct PictureNeeds {
  size_t weight_bytes = 0;
  ImageSize typical;        // Size of a plain request. It must fit.
  int64_t most_pixels = 0;  // In the largest picture that there may be.
  // The most that one picture needs; unset for a size that the model does not take.
  absl::FunctionRef<std::optional<DeviceRunBytes>(ImageSize)> of;
};

// Room for a typical picture, for several of them at once, and for larger ones where the model
// takes them, as far as half of the free memory goes. RESOURCE_EXHAUSTED if weights and one typical
// picture do not fit: the message has need and limit.
absl::StatusOr<DeviceRunBytes> RoomForPictures(const std::string& origin, const Device& device,
                                               const PictureNeeds& needs);

// INVALID_ARGUMENT, with sizes, if what one picture needs does not fit the model's workspace.
absl::Status CheckRoom(ImageSize size, const DeviceRunBytes& need, const Device& device,
                       const DeviceRunBytes& room);

}  // namespace longview::models
