#include "models/vision/device_batch.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

std::vector<DevicePicture> PicturesOf(std::span<const VisionInput> inputs) {
  std::vector<DevicePicture> pictures;
  for (const VisionInput& input : inputs) {
    pictures.push_back({input.pixels->size, input.pixels, input.stages});
  }
  return pictures;
}

}  // namespace

DevicePicture WholePicture(ImageSize size, size_t stages) {
  DevicePicture picture{size, nullptr, std::vector<int>(stages)};
  std::iota(picture.stages.begin(), picture.stages.end(), 0);
  return picture;
}

DeviceVisionBatch::DeviceVisionBatch(const Device& device, DeviceWorkspace& workspace,
                                     const DeviceVisionLayers& layers,
                                     std::span<const VisionInput> inputs, EncoderTimes* times)
    : layers_(layers),
      pictures_(PicturesOf(inputs)),
      features_(inputs.size()),
      maps_(inputs.size()),
      run_(device, workspace, *this, times) {}

std::string DeviceVisionBatch::NameOf(int item) const {
  const ImageSize size = pictures_[item].size;
  return absl::StrCat("a picture of ", size.height, " x ", size.width);
}

std::unique_ptr<DevicePart> DeviceVisionBatch::Plan(std::span<const int> items) const {
  std::vector<DevicePicture> some;
  for (const int item : items) some.push_back(pictures_[item]);
  return layers_.Plan(some);
}

void DeviceVisionBatch::Keep(std::span<const int> items, const std::byte* results) {
  const auto* next = reinterpret_cast<const float*>(results);
  const auto take = [&](int64_t count) {
    std::vector<float> values(next, next + count);
    next += count;
    return values;
  };
  for (const int item : items) features_[item] = take(layers_.feature_floats());
  for (const int item : items) {
    const std::vector<FeatureMap> shapes = layers_.MapsOf(pictures_[item].size);
    for (const int stage : pictures_[item].stages) {
      FeatureMap map = shapes[stage];
      map.values = take(int64_t{map.channels} * map.size.height * map.size.width);
      maps_[item].push_back(std::move(map));
    }
  }
}

}  // namespace longview::models
