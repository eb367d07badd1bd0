#include "models/vil/device_stage.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/cuda/pool/pool_pieces.h"
#include "models/vil/stored_bias.h"

namespace longview::models {
namespace {

// `count` values of T that `write(T*)` writes.
template <typename T, typename Write>
const T* AddWritten(StagedLists& lists, int64_t count, Write&& write) {
  const auto bytes = static_cast<size_t>(count) * sizeof(T);
  return reinterpret_cast<const T*>(
      lists.AddBytes(bytes, [&](std::byte* to) { write(reinterpret_cast<T*>(to)); }));
}

}  // namespace

DeviceVilStage::DeviceVilStage(const VilContext& context, size_t index,
                               std::span<const ImageSize> maps)
    : context_(context),
      index_(index),
      stage_(context.config->stages[index]),
      plan_(PlanVilStage(context, index, maps, /*measure=*/true)) {
  for (const ImageSize map : maps) {
    if (std::ranges::find(sizes_, map) == sizes_.end()) sizes_.push_back(map);
  }
  PlanLocal(maps);
  if (stage_.relative_bias()) PlanBiases();
}

void DeviceVilStage::PlanLocal(std::span<const ImageSize> maps) {
  if (!is_long_short()) {
    local_ = plan_.bands.front().attention.made;
    return;
  }
  const LongShortPlan& whole = *plan_.long_short.front().whole;
  local_ = context_.shapes->Of<VilPlan>(ShapeKey(ShapeKind::kJoinedPlan, index_, maps), [&] {
    VilPlan plan{whole.tokens, whole.bias_rows};
    JoinTables(0, plan);
    return plan;
  });
}

// The plan's tables come in the order in which sizes come, as sizes_ do.
void DeviceVilStage::PlanBiases() {
  const std::vector<std::vector<int32_t>>& rows = local_->bias_rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    DeviceMapBias& bias = biases_.emplace_back();
    bias.first = bias_entries();
    bias.count = static_cast<int64_t>(rows[i].size());
    bias.learned_entries = StoredBias(stage_).entries;
    if (!Interpolates(sizes_[i])) continue;
    bias.learned_entries = int64_t{2 * sizes_[i].height - 1} * (2 * sizes_[i].width - 1);
  }
}

bool DeviceVilStage::Interpolates(ImageSize map) const {
  return stage_.attention == VilAttention::kFull && stage_.relative_bias() && map != stage_.map;
}

int DeviceVilStage::sources() const {
  return local_ == nullptr ? 0 : static_cast<int>(local_->plan.sources.size());
}

int64_t DeviceVilStage::most_tokens() const {
  int64_t most = 0;
  for (const MapTokens& image : plan_.images) most = std::max(most, image.count());
  return most;
}

int64_t DeviceVilStage::bias_entries() const {
  int64_t entries = 0;
  for (const DeviceMapBias& bias : biases_) entries += bias.count;
  return entries;
}

void DeviceVilStage::Stage(const DeviceVilStage* before, std::span<const ImageSize> sizes,
                           std::span<const PixelValues* const> pictures, StagedLists& lists) {
  if (before == nullptr) {
    StagePictures(sizes, pictures, lists);
  } else {
    StageTaps(*before, lists);
  }
  StageRows(lists);
  if (stage_.absolute) StagePositions(lists);
  StageBiases(lists);
  if (stage_.attention == VilAttention::kReduction) StageReduction(lists);
  if (is_long_short()) StageLandmarks(lists);
  attention_ = global_attention_ = {};
  if (local_ != nullptr) attention_ = StagePlan(local_->plan, lists);
  if (separates_globals()) global_attention_ = StagePlan(plan_.globals.made->plan, lists);
  if (is_long_short()) {
    global_attention_ = StagePlan(plan_.long_short.front().whole->class_rows, lists);
  }
}

void DeviceVilStage::StagePictures(std::span<const ImageSize> sizes,
                                   std::span<const PixelValues* const> pictures,
                                   StagedLists& lists) {
  const int64_t channels = context_.config->channels;
  std::vector<kernels::cuda::PixelImage> images;
  int64_t pixels = 0, patches = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ImageSize map = plan_.images[i].map;
    images.push_back({pixels, patches, sizes[i].height, sizes[i].width, map.height, map.width});
    pixels += channels * sizes[i].height * sizes[i].width;
    patches += plan_.images[i].count();
  }
  lists_.pictures = lists.Add(images);
  lists_.pixels = AddWritten<float>(lists, pixels, [&](float* to) {
    for (const PixelValues* picture : pictures) {
      to = std::ranges::copy(picture->values, to).out;
    }
  });
}

void DeviceVilStage::StageTaps(const DeviceVilStage& before, StagedLists& lists) {
  const int side = stage_.patch;
  lists_.taps = AddWritten<int32_t>(lists, tokens() * side * side, [&](int32_t* to) {
    for (size_t i = 0; i < plan_.images.size(); ++i) {
      const MapTokens& from = before.plan_.images[i];
      const ImageSize map = plan_.images[i].map;
      for (int place = 0; place < map.height * map.width; ++place) {
        const int y = place / map.width * side, x = place % map.width * side;
        for (int tap = 0; tap < side * side; ++tap) {
          const int64_t at = int64_t{y + tap / side} * from.map.width + x + tap % side;
          *to++ = static_cast<int32_t>(from.row(at));
        }
      }
    }
  });
}

void DeviceVilStage::StageRows(StagedLists& lists) {
  lists_.rows = AddWritten<int32_t>(lists, tokens(), [&](int32_t* to) {
    for (const MapTokens& image : plan_.images) {
      for (const int32_t place : *image.places) *to++ = image.row0 + place;
    }
  });
  lists_.begins = lists.Add(plan_.offsets);
  std::vector<int32_t> rows, class_rows;
  for (const MapTokens& image : plan_.images) {
    for (int g = 0; g < stage_.globals; ++g) {
      rows.push_back(image.row0 + g);
      class_rows.push_back(g);
    }
  }
  lists_.globals = lists.Add(rows);
  lists_.class_rows = lists.Add(class_rows);
}

// Rows and columns of all sizes one behind the other.
void DeviceVilStage::StagePositions(StagedLists& lists) {
  std::vector<int32_t> down0 = {0}, across0 = {0};
  for (const ImageSize size : sizes_) {
    down0.push_back(down0.back() + size.height);
    across0.push_back(across0.back() + size.width);
  }
  const int64_t half = stage_.width / 2;
  const auto positions = [&](int64_t count, std::vector<float> VilMapWeights::*of_map) {
    return AddWritten<float>(lists, count * half, [&](float* to) {
      for (const ImageSize& size : sizes_)
        to = std::ranges::copy((*PlacesOf(size)).*of_map, to).out;
    });
  };
  lists_.down = positions(down0.back(), &VilMapWeights::row_positions);
  lists_.across = positions(across0.back(), &VilMapWeights::column_positions);
  const auto places = [&](std::span<const int32_t> first, auto&& of_place) {
    return AddWritten<int32_t>(lists, tokens(), [&](int32_t* to) {
      for (const MapTokens& image : plan_.images) {
        const int32_t begin = first[std::ranges::find(sizes_, image.map) - sizes_.begin()];
        for (int p = 0; p < image.map.height * image.map.width; ++p) {
          *to++ = begin + of_place(p, image.map.width);
        }
      }
    });
  };
  lists_.down_rows = places(down0, [](int place, int width) { return place / width; });
  lists_.across_rows = places(across0, [](int place, int width) { return place % width; });
}

void DeviceVilStage::StageBiases(StagedLists& lists) {
  for (size_t i = 0; i < biases_.size(); ++i) {
    biases_[i].entries = lists.Add(std::span<const int32_t>(local_->bias_rows[i]));
    biases_[i].learned.clear();
    if (!Interpolates(sizes_[i])) continue;
    for (int b = 0; b < stage_.blocks; ++b) {
      biases_[i].learned.push_back(AddWritten<float>(
          lists, stage_.heads * biases_[i].learned_entries,
          [&](float* to) { std::ranges::copy(PlacesOf(sizes_[i])->tables[b], to); }));
    }
  }
}

// Its biases are a whole learned table: entry i is row i.
VilMapEntry DeviceVilStage::PlacesOf(const ImageSize& map) const {
  std::vector<std::vector<int32_t>> all(1);
  if (Interpolates(map)) {
    all[0].resize(static_cast<size_t>(2 * map.height - 1) * (2 * map.width - 1));
    std::iota(all[0].begin(), all[0].end(), 0);
  }
  return VilMapsOf(context_, index_, {&map, 1}, all)[0];
}

void DeviceVilStage::StageReduction(StagedLists& lists) {
  const int side = stage_.features;
  std::vector<int32_t> begins = {0}, keys, global_keys;
  int32_t key0 = 0;
  for (const MapTokens& image : plan_.images) {
    for (int g = 0; g < stage_.globals; ++g) global_keys.push_back(key0 + g);
    keys.push_back(key0 + stage_.globals);
    key0 += static_cast<int32_t>(ProjectedKeys(stage_, image.map));
    begins.push_back(begins.back() + key0 - keys.back());
  }
  lists_.reduced_begins = lists.Add(begins);
  lists_.reduced_keys = lists.Add(keys);
  lists_.global_keys = lists.Add(global_keys);
  lists_.reduced_from =
      AddWritten<int32_t>(lists, reduced_places() * side * side, [&](int32_t* to) {
        for (const MapTokens& image : plan_.images) {
          const int rows = image.map.height / side, columns = image.map.width / side;
          for (int place = 0; place < rows * columns; ++place) {
            const int y = place / columns * side, x = place % columns * side;
            for (int tap = 0; tap < side * side; ++tap) {
              const int64_t at = int64_t{y + tap / side} * image.map.width + x + tap % side;
              *to++ = static_cast<int32_t>(image.row(at));
            }
          }
        }
      });
}

void DeviceVilStage::StageLandmarks(StagedLists& lists) {
  const LongShortPlan& whole = *plan_.long_short.front().whole;
  std::vector<kernels::cuda::PoolSegment> images;
  for (const MapTokens& image : plan_.images)
    images.push_back({image.row0, image.row0 + image.rows});
  const kernels::cuda::PoolPiecePlan cut = kernels::cuda::CutPieces(images);
  pieces_ = static_cast<int32_t>(cut.pieces.size());
  lists_.in_map = lists.Add(whole.in_map);
  lists_.pieces = lists.Add(cut.pieces);
  lists_.piece0 = lists.Add(cut.piece0);
}

}  // namespace longview::models
