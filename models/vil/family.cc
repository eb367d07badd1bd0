#include "models/vil/family.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

// Pairs of places on an axis of n that squares of w, widened by e, hold.
double PairsAlong(int n, int w, int e) {
  double sum = 0;
  for (int begin = 0; begin < n; begin += w) {
    const int from = std::max(0, begin - e), to = std::min(n, begin + w + e);
    sum += static_cast<double>(std::min(w, n - begin)) * (to - from);
  }
  return sum;
}

// Query-key products of an image's tokens in one stage, in channels of one head times heads.
double Products(const VilConfig& config, const VilStage& stage, ImageSize map) {
  const double local = static_cast<double>(map.height) * map.width, g = stage.globals;
  const double all = local + g;
  switch (stage.attention) {
    case VilAttention::kFull:
      return all * all;
    case VilAttention::kChunks: {
      if (config.only_global) return local * g + g * all;
      const int w = stage.features;
      return PairsAlong(map.height, w, w) * PairsAlong(map.width, w, w) + local * g + g * all;
    }
    case VilAttention::kLongShort: {
      const int w = stage.features, e = std::max(w / 2, 1);
      const double window = w == 0 ? 0 : PairsAlong(map.height, w, e) * PairsAlong(map.width, w, e);
      // Landmarks are read by every token and made of every token.
      return window + local * (2.0 * stage.ranks + g) + g * all;
    }
    case VilAttention::kPerformer:
      return 2 * all * stage.features;
    default:
      return all * static_cast<double>(ProjectedKeys(stage, map));
  }
}

}  // namespace

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
  EncoderWork work;
  const std::vector<ImageSize> maps = *VilMaps(config_, size);
  double channels = config_.channels;
  for (size_t s = 0; s < maps.size(); ++s) {
    const VilStage& stage = config_.stages[s];
    const double d = stage.width;
    const double local = static_cast<double>(maps[s].height) * maps[s].width;
    const double all = local + stage.globals;
    work.linear += local * d * channels * stage.patch * stage.patch;
    const double columns = double{1} * stage.heads * stage.ranks;
    work.linear += stage.blocks * all * d * (4 * d + 2.0 * stage.hidden + columns);
    work.attention += stage.blocks * 2 * d * Products(config_, stage, maps[s]);
    work.rows += stage.blocks * 16 * all * d;
    channels = d;
  }
  work.linear += static_cast<double>(config_.labels.size()) * config_.feature_width();
  return work;
}

}  // namespace longview::models
