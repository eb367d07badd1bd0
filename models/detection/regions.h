// Mask R-CNN inside regions of the pyramid: classes and boxes of proposals, masks of
// detections.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/vision/roi_align.h"
#include "models/detection/candidates.h"
#include "models/detection/config.h"
#include "models/detection/head.h"
#include "models/detection/pyramid.h"
#include "models/detection/weights.h"

namespace longview::models {

// The pyramid's levels that regions are read from: all but the coarsest.
class RegionReader {
 public:
  RegionReader(const DetectorConfig& config, const PyramidLayout& layout, const std::byte* levels,
               Compute compute);

  // The region as T [bins, bins, width] to `to`. A region of 224 pixels a side is read at stride
  // 16, one of twice the side a level above.
  void Read(const Box& region, int bins, std::byte* to) const;

 private:
  const kernels::PyramidMap& MapOf(const Box& region) const;

  std::vector<kernels::PyramidMap> maps_;
  int first_level_;  // log2 of the finest stride.
  const RowKernels& kernels_;
  size_t workspace_floats_ = 0;
};

// Class logits [K + 1], background last, and deltas [4 K] of every proposal, into outputs
// [proposals, 5 K + 1].
void ScoreRegions(const MaskRcnnWeights& weights, const RegionReader& reader, int bins,
                  std::span<const ScoredBox> proposals, const PanelContext& context,
                  float* outputs);

// Best first, clipped to the input's size. `source` is the proposal's index.
std::vector<ScoredBox> ChooseDetections(const DetectorConfig& config,
                                        std::span<const ScoredBox> proposals, const float* outputs,
                                        const DetectorInput& input);

// Detections whose masks are computed at a time.
inline constexpr int kMaskGroup = 16;

struct MaskBuffers {
  std::byte* maps[2] = {};  // T [kMaskGroup * bins * bins, widest channels]
};

// Fills the masks of `found`, at most kMaskGroup of them: sigmoid of the logits of each one's
// class.
void FillMasks(const MaskRcnnConfig& config, const MaskRcnnWeights& weights,
               const RegionReader& reader, const MaskBuffers& buffers, const PanelContext& context,
               std::span<FoundBox> found);

}  // namespace longview::models
