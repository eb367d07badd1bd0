#include "models/detection/mask_rcnn.h"

#include <algorithm>
#include <utility>

#include "models/detection/head_frame.h"
#include "models/detection/proposals.h"
#include "models/detection/regions.h"

namespace longview::models {
namespace {

struct MaskRcnnBuffers {
  PyramidBuffers pyramid;
  std::byte* panel = nullptr;  // T [kPanelRows, widest gathered input]
  float* anchors = nullptr;    // [rows, 5 A]: objectness and deltas.
  float* regions = nullptr;    // [proposals, 5 K + 1]: logits and deltas.
  MaskBuffers masks;
};

class MaskRcnnRun final : public PyramidHeadRun<MaskRcnnBuffers> {
 public:
  MaskRcnnRun(const HeadParts& parts, const DetectorInput& input, PyramidLayout layout,
              const MaskRcnnBuffers& buffers, HeadTimes* times)
      : PyramidHeadRun(parts, input, std::move(layout), buffers, times),
        weights_(parts.weights.mask_rcnn),
        reader_(config_, layout_, buffers_.pyramid.levels, parts.context.compute) {}

  static MaskRcnnBuffers Carve(const HeadParts& parts, const PyramidLayout& layout, bool masks,
                               Carver& carver);
  // As many proposals and detections as there can be.
  static EncoderWork Work(const HeadParts& parts, const PyramidLayout& layout, int detections,
                          bool masks);

  bool Advance() override;

 private:
  enum class Step { kPyramid, kAnchors, kRegions, kMasks };

  void Regions();

  const MaskRcnnWeights& weights_;
  const RegionReader reader_;
  Step step_ = Step::kPyramid;
  std::vector<ScoredBox> proposals_;
  size_t masked_ = 0;  // Detections that have their masks.
};

MaskRcnnBuffers MaskRcnnRun::Carve(const HeadParts& parts, const PyramidLayout& layout, bool masks,
                                   Carver& carver) {
  const DetectorConfig& config = parts.config;
  const MaskRcnnConfig& settings = config.mask_rcnn;
  const int64_t element = ElementBytes(parts.context.compute), width = config.width;
  const int64_t widest_mask = std::max<int64_t>(width, settings.mask_width);
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * element));
  };
  MaskRcnnBuffers b;
  const MapRows& last = layout.levels[layout.fused - 1];
  b.pyramid.levels = take(layout.rows * width);
  b.pyramid.fused = take((last.row0 + last.rows()) * width);
  b.panel = take(kPanelRows * std::max<int64_t>({PyramidPanelWidth(parts.weights.pyramid),
                                                 9 * width, 9 * widest_mask,
                                                 width * settings.box_bins * settings.box_bins}));
  b.anchors = carver.Take<float>(layout.rows * 5 * config.anchors(0));
  b.regions = carver.Take<float>(int64_t{settings.proposals} * (5 * config.classes() + 1));
  for (std::byte*& map : b.masks.maps) {
    map = take(masks ? int64_t{kMaskGroup} * settings.mask_bins * settings.mask_bins * widest_mask
                     : 0);
  }
  return b;
}

EncoderWork MaskRcnnRun::Work(const HeadParts& parts, const PyramidLayout& layout, int detections,
                              bool masks) {
  const MaskRcnnConfig& settings = parts.config.mask_rcnn;
  const MaskRcnnWeights& head = parts.weights.mask_rcnn;
  EncoderWork work;
  work += LinearWork(head.proposal_conv->layer, layout.rows);
  work += LinearWork(*head.proposals, layout.rows);
  for (const DenseLayer& layer : head.box_layers) work += LinearWork(layer, settings.proposals);
  work += LinearWork(*head.box_outputs, settings.proposals);
  if (!masks) return work;
  const int64_t rows = int64_t{detections} * settings.mask_bins * settings.mask_bins;
  for (const Convolution& conv : head.mask_convs) work += LinearWork(conv.layer, rows);
  work += LinearWork(*head.mask_up, rows);
  return work;
}

bool MaskRcnnRun::Advance() {
  switch (step_) {
    case Step::kPyramid:
      if (!pyramid_.Advance()) step_ = Step::kAnchors;
      return true;
    case Step::kAnchors: {
      ScoreAnchors(weights_, layout_, buffers_.pyramid.levels, panels_, buffers_.anchors);
      const Stopwatch watch(choosing_);
      proposals_ = ChooseProposals(config_, layout_, buffers_.anchors, input_.size);
      step_ = Step::kRegions;
      return true;
    }
    case Step::kRegions:
      Regions();
      step_ = Step::kMasks;
      return input_.masks && !found_.empty();
    case Step::kMasks: {
      const size_t count = std::min<size_t>(kMaskGroup, found_.size() - masked_);
      FillMasks(config_.mask_rcnn, weights_, reader_, buffers_.masks, panels_,
                std::span(found_).subspan(masked_, count));
      masked_ += count;
      return masked_ < found_.size();
    }
  }
  return false;
}

void MaskRcnnRun::Regions() {
  ScoreRegions(weights_, reader_, config_.mask_rcnn.box_bins, proposals_, panels_,
               buffers_.regions);
  const Stopwatch watch(choosing_);
  for (const ScoredBox& kept : ChooseDetections(config_, proposals_, buffers_.regions, input_)) {
    Keep(kept);
  }
}

}  // namespace

std::unique_ptr<DetectorHead> MakeMaskRcnnHead(const DetectorConfig& config,
                                               const DetectorWeights& weights,
                                               const HeadContext& context) {
  return std::make_unique<FramedHead<MaskRcnnRun>>(HeadParts{config, weights, context});
}

}  // namespace longview::models
