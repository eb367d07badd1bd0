// RoIAlign (He et al. 2017), aligned, with adaptive sampling: a region of a map as a square of
// means, one per bin (detectron2's ROIAlign(aligned=True, sampling_ratio=0)).
//
//   start = coordinate * scale - 0.5, bin = (end - start) / bins, samples per bin = ceil(bin), both
//   axes alone; a sample beyond one pixel outside the map is 0, others are bilinear, held at the
//   border.
//
// Stateless: thread-safe. All memory is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/span/kv_layout.h"
#include "kernels/vision/box.h"

namespace longview::kernels {

// One level of a pyramid: [height, width, channels], without gaps. Borrowed.
struct PyramidMap {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  int height = 0;
  int width = 0;
  int channels = 0;
  float scale = 1;  // Map pixels per image pixel.
};

// Floats that AlignRegion needs.
inline constexpr size_t AlignFloats(int height, int width) {
  return static_cast<size_t>(height) + static_cast<size_t>(width);
}

// out [bins, bins, channels]: rows of bins first. `region` is in image pixels; one without area
// gives zeros. Samples of a bin that fall between the same pixels are summed as one.
// REQUIRES: workspace.size() >= AlignFloats(map.height, map.width).
void AlignRegion(const PyramidMap& map, const Box& region, int bins, std::span<float> workspace,
                 float* out);

// Reference of AlignRegion, sample by sample in double precision.
void AlignRegionRef(const PyramidMap& map, const Box& region, int bins, float* out);

}  // namespace longview::kernels
