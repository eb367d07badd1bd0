// The part behind the backbone: a detector's heads over one image's maps, step by step.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/vision/box.h"
#include "models/cost/work.h"
#include "models/dense/layer.h"
#include "models/detection/config.h"
#include "models/detection/weights.h"
#include "models/vision/family.h"

namespace longview::models {

// One image behind the backbone.
struct DetectorInput {
  std::span<const FeatureMap> maps;  // One for each stage of the pyramid.
  ImageSize size;                    // Without padding, to which boxes are clipped.
  ImageSize padded;
  float score_threshold = 0.05f;
  int detections = 100;
  bool masks = false;
};

// A detection in pixels of the network's input.
struct FoundBox {
  kernels::Box box;
  float score = 0;
  int label = 0;
  // [side, side] probabilities of a pixel inside the box, where masks were asked for.
  std::vector<float> mask;
};

// One thread uses it; it computes on all. May throw what LibTorch and the allocator throw.
class HeadRun {
 public:
  virtual ~HeadRun() = default;
  // The next piece of work, about a convolution long; returns whether some is left.
  virtual bool Advance() = 0;
  // Best first. Once, when Advance returned false.
  virtual std::vector<FoundBox> Take() = 0;
};

// Thread-safe but for Begin, which belongs to the executor's thread.
class DetectorHead {
 public:
  virtual ~DetectorHead() = default;

  // Exact bytes that an image of this size needs as `scratch`.
  virtual size_t ScratchBytes(ImageSize padded, int detections, bool masks) const = 0;
  // REQUIRES: what `input` points to, scratch and this outlive the run; `times` may be null.
  virtual std::unique_ptr<HeadRun> Begin(const DetectorInput& input, std::byte* scratch,
                                         RunTimes* times) const = 0;
  virtual EncoderWork WorkOf(ImageSize padded, int detections, bool masks) const = 0;
};

// `rows` rows through a linear: products, and the elements that are gathered and written.
inline EncoderWork LinearWork(const DenseLayer& layer, int64_t rows) {
  const double in = static_cast<double>(layer.in()), out = static_cast<double>(layer.out());
  EncoderWork work;
  work.linear = static_cast<double>(rows) * in * out;
  work.rows = static_cast<double>(rows) * (in + out);
  return work;
}

// Context that all heads run with.
struct HeadContext {
  Compute compute = Compute::kFp32;
  const kernels::ParallelFor* pool = nullptr;
};

// Mask R-CNN's heads: proposals, boxes, masks. Borrows its arguments, which outlive it.
std::unique_ptr<DetectorHead> MakeMaskRcnnHead(const DetectorConfig& config,
                                               const DetectorWeights& weights,
                                               const HeadContext& context);

// RetinaNet's head: two towers of convolutions over all levels of the pyramid, class scores and box
// deltas per anchor. Scores are never kept: the candidates of a level are chosen panel by panel.
// Borrows its arguments, which outlive it.
std::unique_ptr<DetectorHead> MakeRetinaNetHead(const DetectorConfig& config,
                                                const DetectorWeights& weights,
                                                const HeadContext& context);

}  // namespace longview::models
