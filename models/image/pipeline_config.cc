// Reading preprocessor_config.json.
#include <algorithm>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "models/config/json_reader.h"
#include "models/image/pipeline.h"

namespace longview::models {
namespace {

constexpr int kMaxSide = 1 << 16;

ImageSize ReadSides(JsonReader& reader) {
  reader.RefuseUnknown({"height", "width"});
  ImageSize size;
  size.height = static_cast<int>(reader.Int("height", 1, kMaxSide));
  size.width = static_cast<int>(reader.Int("width", 1, kMaxSide));
  return size;
}

void ReadSize(JsonReader& root, ImagePipeline& pipeline) {
  JsonReader size = root.Object("size");
  if (size.Has("shortest_edge")) {
    size.RefuseUnknown({"shortest_edge", "longest_edge"});
    pipeline.shortest_edge = static_cast<int>(size.Int("shortest_edge", 1, kMaxSide));
    pipeline.longest_edge =
        static_cast<int>(size.IntOr("longest_edge", 0, pipeline.shortest_edge, kMaxSide));
    if (pipeline.longest_edge > 0 && pipeline.rule == ImagePipeline::Rule::kClassification) {
      size.Refuse("longest_edge", "no such key for a classifier");
    }
  } else {
    pipeline.sides = ReadSides(size);
  }
  root.Merge(size.status());
}

void ReadChannels(JsonReader& root, std::string_view key, double above,
                  std::array<double, 3>& out) {
  const nlohmann::json* list = root.Find(key);
  const bool numbers = list != nullptr && list->is_array() && list->size() == out.size() &&
                       std::all_of(list->begin(), list->end(), [&](const nlohmann::json& v) {
                         return v.is_number() && v.get<double>() > above;
                       });
  if (!numbers) {
    root.Refuse(key, above >= 0 ? "3 numbers above 0" : "3 numbers");
    return;
  }
  for (size_t c = 0; c < out.size(); ++c) out[c] = (*list)[c].get<double>();
}

Resample ReadResample(JsonReader& root) {
  const auto code = root.IntOr("resample", static_cast<int>(Resample::kBicubic), 0, 5);
  return static_cast<Resample>(code);
}

// A crop larger than what the resize leaves would need padding, which the originals never do.
void CheckCrop(JsonReader& root, const ImagePipeline& pipeline) {
  if (!pipeline.crop) return;
  const int shorter = pipeline.sides ? std::min(pipeline.sides->height, pipeline.sides->width)
                                     : pipeline.shortest_edge;
  if (pipeline.crop->height > shorter || pipeline.crop->width > shorter) {
    root.Refuse("crop_size", "sides within the resized picture's");
  }
}

}  // namespace

absl::StatusOr<ImagePipeline> ReadImagePipeline(const nlohmann::json& config,
                                                const std::string& origin) {
  JsonReader root(config, origin);
  ImagePipeline pipeline;
  const std::string type =
      root.Choice("image_processor_type", {"ViLImageProcessor", "ViLDetectionImageProcessor"});
  const bool detection = type == "ViLDetectionImageProcessor";
  pipeline.rule =
      detection ? ImagePipeline::Rule::kDetection : ImagePipeline::Rule::kClassification;
  root.RefuseUnknown({"image_processor_type", "do_convert_rgb", "do_resize", "size", "resample",
                      "do_center_crop", "crop_size", "do_rescale", "rescale_factor", "do_normalize",
                      "image_mean", "image_std", "do_pad", "size_divisor", "apply_exif_orientation",
                      "processor_class"});
  pipeline.rotate = root.BoolOr("apply_exif_orientation", true);
  if (!root.BoolOr("do_convert_rgb", true)) root.Refuse("do_convert_rgb", "true");
  if (root.BoolOr("do_resize", true)) ReadSize(root, pipeline);
  pipeline.resample = ReadResample(root);
  if (root.BoolOr("do_center_crop", false)) {
    JsonReader crop = root.Object("crop_size");
    pipeline.crop = ReadSides(crop);
    root.Merge(crop.status());
    CheckCrop(root, pipeline);
  }
  if (root.BoolOr("do_rescale", true)) {
    pipeline.rescale_factor = root.NumberOr("rescale_factor", 1.0 / 255);
    if (!(pipeline.rescale_factor > 0)) root.Refuse("rescale_factor", "a number above 0");
  }
  if (root.BoolOr("do_normalize", true)) {
    ReadChannels(root, "image_mean", -1e30, pipeline.mean);
    ReadChannels(root, "image_std", 0, pipeline.std);
  }
  if (root.BoolOr("do_pad", false)) {
    pipeline.size_divisor = static_cast<int>(root.Int("size_divisor", 1, 1024));
  }
  if (!root.status().ok()) return root.status();
  return pipeline;
}

}  // namespace longview::models
