// A prepared image: pixels as the model reads them, and what is wanted of them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/image/pipeline.h"
#include "models/model.h"

namespace longview::models {

// Immutable once Prepare returned it.
struct ImageItem final : Item {
  Task task = Task::kImageClassification;
  PixelValues pixels;
  ImageSize given;  // The picture as seen; of pixel values, their own size.
  std::vector<std::string> tensors;
  bool typed = true;
  int top_k = 0;
  std::vector<int> stages;  // Stages whose maps are wanted.

  bool Wants(std::string_view tensor) const {
    return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
  }
  void SetCost(const Cost& cost) { cost_ = cost; }
  void SetUsage(const ItemUsage& usage) { usage_ = usage; }
};

}  // namespace longview::models
