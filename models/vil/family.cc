#include "models/vil/family.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/span/launch_shape.h"

namespace longview::models {

void PlanForDevice(VilContext& context) {
  context.band_tokens = std::numeric_limits<int64_t>::max();
  context.device_tile_rows = kernels::cuda::kDeviceTileRows;
  context.cuts.never = true;
}

absl::Status CheckVilSize(const VilConfig& config, ImageSize size) {
  const absl::StatusOr<std::vector<ImageSize>> maps = VilMaps(config, size);
  if (!maps.ok()) return maps.status();
  for (size_t s = 0; s < maps->size(); ++s) {
    if (config.Fits(s, (*maps)[s])) continue;
    const char* hint = config.backbone || config.any_size
                           ? ""
                           : "; \"any_size\": true in config.json interpolates them";
    return absl::InvalidArgumentError(absl::StrCat(
        "pixels of ", size.height, " x ", size.width, ": the positions of stage ", s + 1, " fit ",
        config.backbone ? "images up to " : "images of ", config.image.height, " x ",
        config.image.width, config.backbone ? "" : " only", hint));
  }
  return absl::OkStatus();
}

absl::Status Vil::CheckSize(ImageSize size) const { return CheckVilSize(config_, size); }

EncoderWork Vil::WorkOf(ImageSize size) const {
  EncoderWork work = *shapes().Of<EncoderWork>(ShapeKey(ShapeKind::kWork, 0, {&size, 1}),
                                               [&] { return CountWork(size); });
  work.linear += static_cast<double>(config_.labels.size()) * config_.feature_width();
  return work;
}

EncoderWork Vil::CountWork(ImageSize size) const {
  return VilBatch::NeedOf(context_, {&size, 1}).work;
}

}  // namespace longview::models
