#include "models/vision/device_batch.h"

#include "absl/strings/str_cat.h"

namespace longview::models {

DeviceVisionBatch::DeviceVisionBatch(const Device& device, DeviceWorkspace& workspace,
                                     const DeviceVisionLayers& layers,
                                     std::span<const VisionInput> inputs, EncoderTimes* times)
    : layers_(layers),
      pictures_(PicturesOf(inputs)),
      results_(inputs.size()),
      run_(device, workspace, *this, times) {}

std::string DeviceVisionBatch::NameOf(int item) const {
  const ImageSize size = pictures_[item].size;
  return absl::StrCat("a picture of ", size.height, " x ", size.width);
}

std::unique_ptr<DevicePart> DeviceVisionBatch::Plan(std::span<const int> items) const {
  std::vector<VisionPicture> some;
  for (const int item : items) some.push_back(pictures_[item]);
  return layers_.Plan(some);
}

void DeviceVisionBatch::Keep(std::span<const int> items, const std::byte* results) {
  results_.Keep(items, pictures_, layers_.feature_floats(),
                reinterpret_cast<const float*>(results),
                [&](ImageSize size) { return layers_.MapsOf(size); });
}

}  // namespace longview::models
