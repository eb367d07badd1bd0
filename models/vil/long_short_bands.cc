#include "models/vil/long_short_bands.h"

#include <algorithm>
#include <utility>

namespace longview::models {
namespace {

class BandPlanner {
 public:
  BandPlanner(const VilContext& context, size_t index, int tile_rows, bool measure,
              VilStagePlan& plan)
      : context_(context),
        index_(index),
        tile_rows_(tile_rows),
        pattern_(LongShortOf(context.config->stages[index])),
        tables_(pattern_.bias && !measure),
        plan_(plan) {}

  void Run() {
    const VilConfig& config = *context_.config;
    const int64_t ratio = config.stride(index_) / config.stride(0);
    const auto large = [&](const MapTokens& image) {
      return CanSlice(pattern_) && image.count() > context_.long_short_slice &&
             image.count() * ratio * ratio > context_.long_short_tokens;
    };
    const auto images = static_cast<int>(plan_.images.size());
    if (std::none_of(plan_.images.begin(), plan_.images.end(), large)) {
      AddWhole(0, images);
      return;
    }
    for (int i = 0; i < images; ++i) {
      if (large(plan_.images[i])) {
        AddSlices(i);
      } else {
        AddWhole(i, i + 1);
      }
    }
  }

 private:
  void AddWhole(int first, int end) {
    std::vector<ImageSize> sizes;
    std::vector<kernels::WindowImage> images;
    VilBand& band = plan_.bands.emplace_back();
    band.attention = plan_.long_short.size();
    band.row0 = plan_.images[first].row0;
    band.rows = plan_.offsets[end] - band.row0;
    for (int i = first; i < end; ++i) {
      const MapTokens& tokens = plan_.images[i];
      const auto found = std::find(sizes.begin(), sizes.end(), tokens.map);
      const auto table = static_cast<int32_t>(found - sizes.begin());
      if (found == sizes.end()) sizes.push_back(tokens.map);
      images.push_back({static_cast<int32_t>(tokens.row0 - band.row0), tokens.map.height,
                        tokens.map.width, 0, 0, table});
    }
    VilLongShort& made = plan_.long_short.emplace_back();
    if (tables_) made.maps = FindVilMaps(context_, index_, sizes);
    made.whole = PlanLongShort(pattern_, images, tile_rows_, Lacks(made.maps));
    AddVilMaps(context_, index_, sizes, made.whole.bias_rows, made.maps);
  }

  void AddSlices(int image) {
    const MapTokens& tokens = plan_.images[image];
    VilLongShort& made = plan_.long_short.emplace_back();
    made.map = SliceMap(pattern_, tokens.map.height, tokens.map.width, context_.long_short_slice);
    for (const LongShortSliceShape& shape : made.map.shapes) {
      const ImageSize size = {shape.height, shape.width};
      std::vector<VilMapCache::Entry> found;
      if (tables_) found = FindVilMaps(context_, index_, {&size, 1});
      made.shapes.push_back(PlanSlice(pattern_, shape, tile_rows_, Lacks(found)));
      AddVilMaps(context_, index_, {&size, 1}, made.shapes.back().bias_rows, found);
      made.maps.insert(made.maps.end(), found.begin(), found.end());
    }
    VilBand& band = plan_.bands.emplace_back();
    band.attention = plan_.long_short.size() - 1;
    band.row0 = tokens.row0;
    band.rows = made.map.rows(pattern_);
    band.image = image;
  }

  static bool Lacks(const std::vector<VilMapCache::Entry>& maps) {
    return std::count(maps.begin(), maps.end(), nullptr) > 0;
  }

  const VilContext& context_;
  const size_t index_;
  const int tile_rows_;
  const LongShortPattern pattern_;
  const bool tables_;  // Whether there are biases, and they are wanted.
  VilStagePlan& plan_;
};

}  // namespace

void PlanLongShortBands(const VilContext& context, size_t stage, int tile_rows, bool measure,
                        VilStagePlan& plan) {
  BandPlanner(context, stage, tile_rows, measure, plan).Run();
}

}  // namespace longview::models
