#include "models/detection/head.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "models/dense/rowwise.h"
#include "models/detection/anchors.h"
#include "models/detection/candidates.h"
#include "models/detection/config.h"
#include "models/detection/head_frame.h"
#include "models/detection/pyramid.h"
#include "models/detection/regions.h"
#include "models/detection/weights.h"
#include "models/layers/weight_loader.h"

namespace longview::models {
namespace {

// Objectness and deltas of every position into outputs [rows, 5 A]: A logits, then 4 A deltas. The
// hidden map is never kept: a panel of it goes straight into the next linear.
void ScoreAnchors(const MaskRcnnWeights& weights, const PyramidLayout& layout,
                  const std::byte* levels, const PanelContext& context, float* outputs) {
  const Convolution& conv = *weights.proposal_conv;
  const DenseLayer& last = *weights.proposals;
  const Compute compute = conv.layer.linear.compute();
  const RowKernels& kernels = ChooseRowKernels(compute);
  const int64_t width = conv.layer.out(), out = last.out();
  const int64_t hidden_bytes = width * ElementBytes(compute),
                out_bytes = out * ElementBytes(compute);
  PanelSizes sizes = conv.layer.linear.sizes();
  NarrowSizes(last, sizes);
  const auto gather = [&](int64_t row, std::byte* to) {
    GatherTaps(conv, levels, layout.levels, layout.levels, row, to);
  };
  ForEachGatheredPanel(conv.layer, sizes, layout.rows, context, gather,
                       [&](int64_t first, int64_t count, int panel, std::byte* hidden) {
                         context.Each(count, [&](long i) {
                           kernels.bias_act(hidden + i * hidden_bytes, conv.layer.bias.data(),
                                            width, Activation::kRelu);
                         });
                         const PanelOutput y = context.Multiply(last, hidden, panel, count);
                         context.Each(count, [&](long i) {
                           kernels.bias_widen(
                               static_cast<const std::byte*>(y.data()) + i * out_bytes,
                               last.bias.data(), out, outputs + (first + i) * out);
                         });
                       });
}

// Best first: the highest of each level, decoded, clipped to `size`, suppressed per level, then the
// best of all levels. `score` is a logit.
std::vector<ScoredBox> ChooseProposals(const DetectorConfig& config, const PyramidLayout& layout,
                                       const float* outputs, ImageSize size) {
  const MaskRcnnConfig& settings = config.mask_rcnn;
  const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
  std::vector<ScoredBox> boxes;
  for (size_t level = 0; level < layout.levels.size(); ++level) {
    const MapRows& map = layout.levels[level];
    const AnchorGrid grid(CellAnchors(config.anchor_sizes[level], config.anchor_ratios[level]),
                          config.stride(level), config.anchor_offset);
    const int64_t anchors = grid.count();
    const float* of_level = outputs + map.row0 * 5 * anchors;
    TopLogits best(static_cast<size_t>(settings.proposals_per_level),
                   -std::numeric_limits<float>::infinity());
    for (int64_t row = 0; row < map.rows(); ++row) {
      best.Offer(of_level + row * 5 * anchors, anchors, row * anchors);
    }
    for (const TopLogits::Entry& entry : best.Take()) {
      const int64_t row = entry.index / anchors;
      const int anchor = static_cast<int>(entry.index % anchors);
      const Box reference =
          grid.At(static_cast<int>(row / map.width), static_cast<int>(row % map.width), anchor);
      const Box box = DecodeBox(reference, of_level + row * 5 * anchors + anchors + 4 * anchor,
                                settings.proposal_weights);
      if (!IsFinite(box)) continue;
      const Box inside = Clipped(box, width, height);
      if (HasArea(inside)) boxes.push_back({inside, entry.logit, static_cast<int>(level), 0});
    }
  }
  return KeepBest(std::move(boxes), settings.proposal_overlap,
                  static_cast<size_t>(settings.proposals));
}

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
              const MaskRcnnBuffers& buffers, RunTimes* times)
      : PyramidHeadRun(parts, input, std::move(layout), buffers, times),
        weights_(parts.weights.mask_rcnn),
        reader_(config_, layout_, buffers_.pyramid.levels, parts.context.compute) {}

  static MaskRcnnBuffers Carve(const HeadParts& parts, const PyramidLayout& layout, bool masks,
                               Carver& carver);
  // Work of the largest numbers of proposals and detections.
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
