#include "models/feature_maps/map_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/span/full_planner.h"
#include "kernels/span/plan_bytes.h"

namespace longview::models {

LongShortPlan PlanLongShort(const LongShortPattern& pattern,
                            std::span<const kernels::WindowImage> images, int tile_rows) {
  LongShortPlan plan;
  kernels::WindowGridPattern windows;
  windows.heads = pattern.heads;
  windows.window = pattern.window;
  windows.extension = pattern.window > 0 ? std::max(pattern.window / 2, 1) : 0;
  windows.class_tokens = pattern.class_tokens;
  windows.bias = pattern.bias;
  windows.tile_rows = tile_rows;
  std::vector<kernels::WindowImage> placed(images.begin(), images.end());
  std::vector<kernels::FullSequence> class_rows;
  for (size_t i = 0; i < placed.size(); ++i) {
    kernels::WindowImage& image = placed[i];
    image.projected_row0 = static_cast<int32_t>(i) * pattern.ranks;
    image.projected = pattern.ranks;
    const int32_t g = pattern.class_tokens, tokens = image.rows * image.cols;
    plan.offsets.push_back(image.row0 + g + tokens);
    plan.in_map.insert(plan.in_map.end(), g, 0);
    plan.in_map.insert(plan.in_map.end(), tokens, 1);
    class_rows.push_back({image.row0, g, image.row0 + g, tokens, {}, image.row0, g});
  }
  kernels::WindowGridPlan grid = kernels::PlanWindowGrid(windows, placed);
  plan.tokens = std::move(grid.plan);
  plan.bias_rows = std::move(grid.bias_rows);
  if (pattern.class_tokens == 0) return plan;
  kernels::FullPattern full;
  full.heads = pattern.heads;
  full.split = true;
  full.own_keys = true;
  full.tile_rows = tile_rows;
  plan.class_rows = kernels::PlanFull(full, class_rows);
  return plan;
}

size_t BytesOf(const LongShortPlan& plan) {
  return kernels::BytesOf(plan.tokens) + kernels::BytesOf(plan.class_rows) + BytesOf(plan.offsets) +
         BytesOf(plan.in_map) + BytesOf(plan.bias_rows);
}

}  // namespace longview::models
