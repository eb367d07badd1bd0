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

// What the network sees at a time. Pictures stay 8 bits a value until their turn comes.
struct DetectionPiece {
  Tile tile;           // Of the given picture; all of it where it is not tiled.
  Raster resized;      // Or, with pixel values:
  PixelValues values;  // padded.
  ImageSize size;      // Of the network's input without padding.
  ImageSize padded;
};

// Immutable once Prepare returned it.
struct DetectionItem final : Item {
  bool detects = true;  // Else stage maps alone are wanted.
  ImageSize given;      // The picture as seen; of pixel values, their own size.
  std::vector<DetectionPiece> pieces;
  std::vector<std::string> tensors;
  std::vector<int> stages;  // Whose maps are wanted in the answer, by index.
  float score_threshold = 0.05f;
  int detections = 100;
  bool masks = false;

  void SetCost(const Cost& cost) { cost_ = cost; }
  void SetUsage(const ItemUsage& usage) { usage_ = usage; }
};

}  // namespace longview::models
