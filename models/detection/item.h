// A prepared detection request: one picture, or its tiles, and what is wanted of them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/detection/tiles.h"
#include "models/image/pipeline.h"
#include "models/model.h"

namespace longview::models {

// A piece of a picture that the network sees at a time.
struct DetectionPiece {
  Tile tile;       // Part of the given picture; all of it where it is not tiled.
  ImageSize size;  // Size of the network's input without padding.
  ImageSize padded;
  bool normalised = false;  // Pixel values were given:
  PixelValues values;       // padded; else empty.
};

// Immutable once Prepare returned it.
struct DetectionItem final : Item {
  bool detects = true;  // False: stage maps alone are wanted.
  ImageSize given;      // The picture as seen; of pixel values, their own size.
  std::vector<DetectionPiece> pieces;
  // 8 bits a value. Of one piece: resized. Of several: as given, tiles are resized in their turn,
  // as all of them together may be much larger than the picture.
  Raster picture;
  std::vector<std::string> tensors;
  std::vector<int> stages;  // Stages whose maps are wanted in the answer, by index.
  float score_threshold = 0.05f;
  int detections = 100;
  bool masks = false;

  void SetCost(const Cost& cost) { cost_ = cost; }
  void SetUsage(const ItemUsage& usage) { usage_ = usage; }
};

}  // namespace longview::models
