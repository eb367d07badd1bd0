#include "models/detection/regions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "models/detection/anchors.h"
#include "models/layers/span_rows.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

RegionReader::RegionReader(const DetectorConfig& config, const PyramidLayout& layout,
                           const std::byte* levels, Compute compute)
    : first_level_(std::countr_zero(static_cast<unsigned>(config.stride(0)))),
      kernels_(ChooseRowKernels(compute)) {
  for (size_t level = 0; level < layout.fused; ++level) {
    const MapRows& rows = layout.levels[level];
    kernels::PyramidMap map;
    map.data = levels + rows.row0 * config.width * ElementBytes(compute);
    map.dtype = SpanType(compute);
    map.height = rows.height;
    map.width = rows.width;
    map.channels = config.width;
    map.scale = 1.0f / static_cast<float>(config.stride(level));
    maps_.push_back(map);
  }
  workspace_floats_ = kernels::AlignFloats(maps_[0].height, maps_[0].width);
}

const kernels::PyramidMap& RegionReader::MapOf(const Box& region) const {
  const float area = (region.x1 - region.x0) * (region.y1 - region.y0);
  const float level = std::floor(4.0f + std::log2(std::sqrt(area) / 224.0f + 1e-8f));
  const int last = static_cast<int>(maps_.size()) - 1;
  return maps_[std::clamp(static_cast<int>(level) - first_level_, 0, last)];
}

void RegionReader::Read(const Box& region, int bins, std::byte* to) const {
  const kernels::PyramidMap& map = MapOf(region);
  const int64_t count = int64_t{bins} * bins * map.channels;
  std::vector<float> workspace(workspace_floats_);
  if (map.dtype == kernels::DType::kFloat32) {
    return AlignRegion(map, region, bins, workspace, reinterpret_cast<float*>(to));
  }
  std::vector<float> pooled(count);
  AlignRegion(map, region, bins, workspace, pooled.data());
  kernels_.narrow(pooled.data(), count, to);
}

void ScoreRegions(const MaskRcnnWeights& weights, const RegionReader& reader, int bins,
                  std::span<const ScoredBox> proposals, const PanelContext& context,
                  float* outputs) {
  const DenseLayer& last = *weights.box_outputs;
  const Compute compute = last.linear.compute();
  const RowKernels& kernels = ChooseRowKernels(compute);
  PanelSizes sizes = last.linear.sizes();
  for (const DenseLayer& layer : weights.box_layers) NarrowSizes(layer, sizes);
  const auto relu = [&](const DenseLayer& layer, int64_t count, std::byte* y) {
    const int64_t bytes = layer.out() * ElementBytes(compute);
    context.Each(count, [&](long i) {
      kernels.bias_act(y + i * bytes, layer.bias.data(), layer.out(), Activation::kRelu);
    });
  };
  const auto gather = [&](int64_t row, std::byte* to) {
    reader.Read(proposals[row].box, bins, to);
  };
  const auto use = [&](int64_t first, int64_t count, int panel, std::byte* y) {
    relu(weights.box_layers[0], count, y);
    std::optional<PanelOutput> hidden;
    for (size_t i = 1; i < weights.box_layers.size(); ++i) {
      PanelOutput next = context.Multiply(weights.box_layers[i], y, panel, count);
      // The layer before has been read: freed first, so that two results are alive at most.
      hidden.reset();
      hidden.emplace(std::move(next));
      y = static_cast<std::byte*>(hidden->data());
      relu(weights.box_layers[i], count, y);
    }
    const PanelOutput out = context.Multiply(last, y, panel, count);
    const int64_t bytes = last.out() * ElementBytes(compute);
    context.Each(count, [&](long i) {
      kernels.bias_widen(static_cast<const std::byte*>(out.data()) + i * bytes, last.bias.data(),
                         last.out(), outputs + (first + i) * last.out());
    });
  };
  ForEachGatheredPanel(weights.box_layers[0], sizes, static_cast<int64_t>(proposals.size()),
                       context, gather, use);
}

std::vector<ScoredBox> ChooseDetections(const DetectorConfig& config,
                                        std::span<const ScoredBox> proposals, const float* outputs,
                                        const DetectorInput& input) {
  const int classes = config.classes();
  const auto width = static_cast<float>(input.size.width);
  const auto height = static_cast<float>(input.size.height);
  std::vector<ScoredBox> boxes;
  std::vector<float> scores(classes + 1);
  for (size_t p = 0; p < proposals.size(); ++p) {
    const float* logits = outputs + p * (5 * classes + 1);
    const float* deltas = logits + classes + 1;
    const float most = *std::max_element(logits, logits + classes + 1);
    float sum = 0;
    for (int k = 0; k <= classes; ++k) sum += scores[k] = std::exp(logits[k] - most);
    std::vector<ScoredBox> of_proposal;
    // detectron2 drops a whole proposal if one of its scores or boxes is not finite.
    bool finite = std::isfinite(sum);
    for (int k = 0; finite && k < classes; ++k) {
      const Box box = DecodeBox(proposals[p].box, deltas + 4 * k, config.mask_rcnn.box_weights);
      finite = IsFinite(box);
      const float score = scores[k] / sum;
      if (!(score > input.score_threshold)) continue;
      of_proposal.push_back({Clipped(box, width, height), score, k, static_cast<int>(p)});
    }
    if (finite) boxes.insert(boxes.end(), of_proposal.begin(), of_proposal.end());
  }
  return KeepBest(std::move(boxes), config.overlap, static_cast<size_t>(input.detections));
}

void FillMasks(const MaskRcnnConfig& config, const MaskRcnnWeights& weights,
               const RegionReader& reader, const MaskBuffers& buffers, const PanelContext& context,
               std::span<FoundBox> found) {
  const DenseLayer& up = *weights.mask_up;
  const Compute compute = up.linear.compute();
  const RowKernels& kernels = ChooseRowKernels(compute);
  const VectorKernels& vectors = ChooseVectorKernels();
  const int bins = config.mask_bins;
  const int64_t channels = config.mask_width, bytes = channels * ElementBytes(compute);
  const int64_t read_bytes = weights.mask_convs[0].channels() * ElementBytes(compute);
  const auto groups = static_cast<int64_t>(found.size());
  context.Each(groups, [&](long i) {
    reader.Read(found[i].box, bins, buffers.maps[0] + i * bins * bins * read_bytes);
  });
  std::vector<MapRows> maps;
  for (int64_t i = 0; i < groups; ++i) maps.push_back({bins, bins, i * bins * bins});
  const std::vector<float> zeros(4 * channels);
  int at = 0;
  for (const Convolution& conv : weights.mask_convs) {
    std::byte* to = buffers.maps[1 - at];
    Convolve(conv, buffers.maps[at], maps, maps, context, [&](int64_t row, std::byte* y) {
      kernels.bias_act(y, conv.layer.bias.data(), channels, Activation::kRelu);
      kernels.bias_copy(y, zeros.data(), channels, to + row * bytes);
    });
    at = 1 - at;
  }
  const int side = 2 * bins;
  for (FoundBox& box : found) box.mask.resize(static_cast<size_t>(side) * side);
  // Every pixel becomes 2 x 2, each a ReLU'd row whose product with its class is the logit.
  const auto gather = [&](int64_t row, std::byte* to) {
    std::copy_n(buffers.maps[at] + row * bytes, bytes, to);
  };
  const auto use = [&](int64_t first, int64_t count, int, std::byte* y) {
    context.Each(count, [&](long i) {
      const int64_t row = first + i;
      FoundBox& box = found[row / (bins * bins)];
      const int64_t place = row % (bins * bins);
      std::vector<float> four(4 * channels);
      kernels.bias_act(y + i * 4 * bytes, up.bias.data(), 4 * channels, Activation::kRelu);
      kernels.bias_widen(y + i * 4 * bytes, zeros.data(), 4 * channels, four.data());
      const float* weight = weights.mask_classes.data() + box.label * channels;
      for (int tap = 0; tap < 4; ++tap) {
        const float logit = vectors.dot(four.data() + tap * channels, weight, channels) +
                            weights.mask_bias[box.label];
        const int64_t mask_row = 2 * (place / bins) + tap / 2;
        const int64_t mask_column = 2 * (place % bins) + tap % 2;
        box.mask[mask_row * side + mask_column] = 1.0f / (1.0f + std::exp(-logit));
      }
    });
  };
  ForEachGatheredPanel(up, up.linear.sizes(), groups * bins * bins, context, gather, use);
}

}  // namespace longview::models
