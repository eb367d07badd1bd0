// Very large pictures in overlapping squares: how they are cut, and which detections stay where
// squares meet.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/detection/head.h"
#include "models/image/pipeline.h"
#include "models/model.h"

namespace longview::models {

inline constexpr int kMostTiles = 256;  // For one picture.

// A part of a picture, in its pixels.
struct Tile {
  int x = 0, y = 0;
  ImageSize size;
};

// Row by row. Along each axis the fewest tiles of grid.size pixels that overlap by grid.overlap at
// least, evenly spread; one tile where the picture is no longer than that. A function of the sizes
// alone. INVALID_ARGUMENT names the field, the value and the limit.
absl::StatusOr<std::vector<Tile>> PlanTiles(ImageSize picture, const TileGrid& grid);

// Pixels of the tile.
Raster PartOf(const Raster& picture, const Tile& tile);

// A detection of one tile, its box in pixels of the picture.
struct TileDetection {
  FoundBox found;
  bool cut = false;  // Its box ends at a side of the tile beyond which the picture goes on.
};

// Whether `box` ends within a 64th of the tile's side from such a side.
bool IsCut(const kernels::Box& box, const Tile& tile, ImageSize picture);

// Detections of all tiles of a picture that are joined at most.
inline constexpr size_t kMostTileDetections = 8192;

// Leaves the `limit` best scored ones; equal scores keep their order.
void LeaveBest(size_t limit, std::vector<TileDetection>& detections);

// Best first, at most `limit`, which is above 0. Of two detections of one class the lower-scored
// one goes if they overlap by more than `overlap` (intersection / union); one that a seam has cut
// goes also if another that stays covers more than `overlap` of it, whatever their scores, so that
// an object seen whole by one tile is not found again in pieces.
std::vector<FoundBox> JoinTiles(std::vector<TileDetection> detections, float overlap, int limit);

}  // namespace longview::models
