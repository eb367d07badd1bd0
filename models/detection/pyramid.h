// The feature pyramid (FPN; Lin et al. 2017) of one image: backbone maps fused from the top down,
// each behind a 3 x 3 convolution, and coarser levels above them.
//
//   m_top = lateral(C_top), m_k = lateral(C_k) + up2(m_{k+1}), P_k = output_k(m_k)
//   RetinaNet:  P6 = conv(C_top), P7 = conv(ReLU(P6)), stride 2;  Mask R-CNN: P6 = P5[::2, ::2]
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/cost/work.h"
#include "models/detection/config.h"
#include "models/detection/weights.h"
#include "models/layers/map_rows.h"
#include "models/vision/family.h"

namespace longview::models {

// How the levels of an image lie in its rows, finest first.
struct PyramidLayout {
  std::vector<MapRows> levels;
  int64_t rows = 0;
  size_t fused = 0;  // Levels that backbone maps enter; the others lie above.
};

// `padded` is a multiple of the coarsest stage's stride.
PyramidLayout LayOutPyramid(const DetectorConfig& config, ImageSize padded);

// The cost of an image's pyramid.
EncoderWork PyramidWork(const DetectorConfig& config, const PyramidWeights& weights,
                        const PyramidLayout& layout);

// Elements of the widest row that the pyramid gathers into a panel: channels of a backbone's map,
// taps of a convolution.
int64_t PyramidPanelWidth(const PyramidWeights& weights);

struct PyramidBuffers {
  std::byte* levels = nullptr;  // T [rows, width]: the result.
  std::byte* fused = nullptr;   // T [fused rows, width]: m. Free again afterwards.
  std::byte* top = nullptr;     // T [rows of the coarsest map, its channels], RetinaNet only.
};

// Runs in as many calls of Advance as there are levels and more. Throws what LibTorch throws.
class PyramidRun {
 public:
  // `maps` are those of config.stages. All that is given outlives the run.
  PyramidRun(const DetectorConfig& config, const PyramidWeights& weights,
             const PyramidLayout& layout, std::span<const FeatureMap> maps,
             const PyramidBuffers& buffers, const PanelContext& context)
      : config_(config),
        weights_(weights),
        layout_(layout),
        maps_(maps),
        buffers_(buffers),
        context_(context) {}

  // Does the next level of work; returns whether some is left.
  bool Advance();

 private:
  void Fuse(size_t level);
  void Output(size_t level);
  void Further();
  void Subsample();

  const DetectorConfig& config_;
  const PyramidWeights& weights_;
  const PyramidLayout& layout_;
  const std::span<const FeatureMap> maps_;
  const PyramidBuffers buffers_;
  const PanelContext context_;
  size_t step_ = 0;
};

}  // namespace longview::models
