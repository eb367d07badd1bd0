// The frame of a head: runs over one picture in buffers that are counted first, and what begins
// them. Run derives from PyramidHeadRun<Buffers> and has
//
//   Run(parts, input, layout, buffers, times)
//   static Buffers Carve(parts, layout, masks, carver)
//   static EncoderWork Work(parts, layout, detections, masks)   behind the pyramid
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "models/dense/scratch.h"
#include "models/detection/candidates.h"
#include "models/detection/config.h"
#include "models/detection/head.h"
#include "models/detection/pyramid.h"
#include "models/detection/weights.h"

namespace longview::models {

// Parts that all runs of a model share. Borrowed, immutable.
struct HeadParts {
  const DetectorConfig& config;
  const DetectorWeights& weights;
  HeadContext context;
};

// Buffers has `pyramid` and `panel`.
template <class Buffers>
class PyramidHeadRun : public HeadRun {
 public:
  std::vector<FoundBox> Take() final { return std::move(found_); }

 protected:
  PyramidHeadRun(const HeadParts& parts, const DetectorInput& input, PyramidLayout layout,
                 const Buffers& buffers, RunTimes* times)
      : config_(parts.config),
        input_(input),
        layout_(std::move(layout)),
        buffers_(buffers),
        panels_{parts.context.pool, buffers.panel, times},
        choosing_(times ? &times->choose : nullptr),
        pyramid_(config_, parts.weights.pyramid, layout_, input_.maps, buffers_.pyramid, panels_) {}

  void Keep(const ScoredBox& box) { found_.push_back({box.box, box.score, box.group, {}}); }

  const DetectorConfig& config_;
  const DetectorInput input_;
  const PyramidLayout layout_;
  const Buffers buffers_;
  const PanelContext panels_;
  double* const choosing_;  // Seconds, or null.
  PyramidRun pyramid_;
  std::vector<FoundBox> found_;
};

template <class Run>
class FramedHead final : public DetectorHead {
 public:
  explicit FramedHead(const HeadParts& parts) : parts_(parts) {}

  size_t ScratchBytes(ImageSize padded, int, bool masks) const override {
    Carver carver(nullptr);
    Run::Carve(parts_, LayOutPyramid(parts_.config, padded), masks, carver);
    return carver.used();
  }

  std::unique_ptr<HeadRun> Begin(const DetectorInput& input, std::byte* scratch,
                                 RunTimes* times) const override {
    PyramidLayout layout = LayOutPyramid(parts_.config, input.padded);
    Carver carver(scratch);
    const auto buffers = Run::Carve(parts_, layout, input.masks, carver);
    return std::make_unique<Run>(parts_, input, std::move(layout), buffers, times);
  }

  EncoderWork WorkOf(ImageSize padded, int detections, bool masks) const override {
    const PyramidLayout layout = LayOutPyramid(parts_.config, padded);
    EncoderWork work = PyramidWork(parts_.config, parts_.weights.pyramid, layout);
    work += Run::Work(parts_, layout, detections, masks);
    return work;
  }

 private:
  const HeadParts parts_;
};

}  // namespace longview::models
