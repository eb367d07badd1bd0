#include "models/detection/tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/vision/nms.h"

namespace longview::models {
namespace {

// Starts along one axis.
std::vector<int> Starts(int length, const TileGrid& grid) {
  if (length <= grid.size) return {0};
  const int64_t step = grid.size - grid.overlap;
  const int64_t count = (length - grid.overlap + step - 1) / step;
  std::vector<int> starts;
  for (int64_t i = 0; i < count; ++i) {
    starts.push_back(static_cast<int>(i * (length - grid.size) / (count - 1)));
  }
  return starts;
}

// How many there would be, without making them.
int64_t CountAlong(int length, const TileGrid& grid) {
  if (length <= grid.size) return 1;
  const int64_t step = grid.size - grid.overlap;
  return (length - grid.overlap + step - 1) / step;
}

// The part of `box` that `cover` covers.
float Covered(const kernels::Box& box, const kernels::Box& cover) {
  const float width = std::min(box.x1, cover.x1) - std::max(box.x0, cover.x0);
  const float height = std::min(box.y1, cover.y1) - std::max(box.y0, cover.y0);
  const float area = (box.x1 - box.x0) * (box.y1 - box.y0);
  return width > 0 && height > 0 ? width * height / area : 0;
}

float ScoreOf(const TileDetection& detection) { return detection.found.score; }

}  // namespace

absl::StatusOr<std::vector<Tile>> PlanTiles(ImageSize picture, const TileGrid& grid) {
  if (grid.size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("tile.size: ", grid.size, " is below 1"));
  }
  if (grid.overlap < 0 || grid.overlap >= grid.size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tile.overlap: ", grid.overlap, " is not in [0, ", grid.size, "), the tile's size"));
  }
  const int64_t count = CountAlong(picture.height, grid) * CountAlong(picture.width, grid);
  if (count > kMostTiles) {
    return absl::InvalidArgumentError(absl::StrCat("tile.size: ", grid.size, " with overlap ",
                                                   grid.overlap, " cuts a picture of ",
                                                   picture.height, " x ", picture.width, " into ",
                                                   count, " tiles, the limit is ", kMostTiles));
  }
  std::vector<Tile> tiles;
  for (const int y : Starts(picture.height, grid)) {
    for (const int x : Starts(picture.width, grid)) {
      tiles.push_back(
          {x, y, {std::min(grid.size, picture.height), std::min(grid.size, picture.width)}});
    }
  }
  return tiles;
}

Raster PartOf(const Raster& picture, const Tile& tile) {
  Raster part(tile.size.width, tile.size.height);
  for (int y = 0; y < tile.size.height; ++y) {
    std::memcpy(part.row(y), picture.row(tile.y + y) + size_t{3} * tile.x,
                size_t{3} * tile.size.width);
  }
  return part;
}

bool IsCut(const kernels::Box& box, const Tile& tile, ImageSize picture) {
  const auto near = [](float edge, int side, int length) {
    return std::abs(edge - static_cast<float>(side)) <
           std::max(1.0f, static_cast<float>(length) / 64);
  };
  const int right = tile.x + tile.size.width, bottom = tile.y + tile.size.height;
  return (tile.x > 0 && near(box.x0, tile.x, tile.size.width)) ||
         (tile.y > 0 && near(box.y0, tile.y, tile.size.height)) ||
         (right < picture.width && near(box.x1, right, tile.size.width)) ||
         (bottom < picture.height && near(box.y1, bottom, tile.size.height));
}

void LeaveBest(size_t limit, std::vector<TileDetection>& detections) {
  if (detections.size() <= limit) return;
  std::ranges::stable_sort(detections, std::ranges::greater(), ScoreOf);
  detections.erase(detections.begin() + static_cast<ptrdiff_t>(limit), detections.end());
}

// Whole ones come first, so that they stay whatever their scores. When `limit` of them stay, what
// does not score above the last of those is left out of the answer; it is looked at only while it
// may keep a cut one out.
std::vector<FoundBox> JoinTiles(std::vector<TileDetection> detections, float overlap, int limit) {
  std::stable_sort(detections.begin(), detections.end(),
                   [](const TileDetection& a, const TileDetection& b) {
                     return a.cut != b.cut ? !a.cut : a.found.score > b.found.score;
                   });
  const auto first_cut = std::ranges::find(detections, true, &TileDetection::cut);
  const float best_cut = first_cut == detections.end() ? 0 : first_cut->found.score;
  std::optional<float> bar;
  std::vector<FoundBox> kept;
  for (TileDetection& detection : detections) {
    const FoundBox& found = detection.found;
    if (bar && (detection.cut ? found.score : best_cut) <= *bar) break;
    const bool again = std::any_of(kept.begin(), kept.end(), [&](const FoundBox& other) {
      if (other.label != found.label) return false;
      return kernels::Overlap(other.box, found.box) > overlap ||
             (detection.cut && Covered(found.box, other.box) > overlap);
    });
    if (again) continue;
    kept.push_back(std::move(detection.found));
    if (!detection.cut && static_cast<int>(kept.size()) == limit) bar = kept.back().score;
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const FoundBox& a, const FoundBox& b) { return a.score > b.score; });
  if (static_cast<int>(kept.size()) > limit) kept.resize(static_cast<size_t>(limit));
  return kept;
}

}  // namespace longview::models
