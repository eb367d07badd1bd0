#include "models/detection/proposals.h"

#include <limits>
#include <utility>

#include "models/detection/anchors.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

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
                         const PanelOutput y = context.Multiply(last, hidden, panel);
                         context.Each(count, [&](long i) {
                           kernels.bias_widen(
                               static_cast<const std::byte*>(y.data()) + i * out_bytes,
                               last.bias.data(), out, outputs + (first + i) * out);
                         });
                       });
}

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

}  // namespace longview::models
