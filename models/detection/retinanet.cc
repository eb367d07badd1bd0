#include "models/detection/head.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "models/detection/anchors.h"
#include "models/detection/candidates.h"
#include "models/detection/head_frame.h"

namespace longview::models {
namespace {

struct RetinaNetBuffers {
  PyramidBuffers pyramid;
  std::byte* panel = nullptr;  // T [kPanelRows, widest gathered input]
  std::byte* tower[2] = {};    // T [rows, width]; the first doubles as the pyramid's m.
  float* deltas = nullptr;     // [rows, 4 A]
  float* scores = nullptr;     // [kPanelRows, A K], logits of a panel.
};

// Logits above it have a sigmoid above `threshold`, but for rounding: a little lower.
float LogitFloor(float threshold) {
  if (threshold <= 0) return -std::numeric_limits<float>::infinity();
  if (threshold >= 1) return std::numeric_limits<float>::infinity();
  return static_cast<float>(std::log(threshold / (1.0 - threshold)) - 1e-3);
}

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

class RetinaNetRun final : public PyramidHeadRun<RetinaNetBuffers> {
 public:
  RetinaNetRun(const HeadParts& parts, const DetectorInput& input, PyramidLayout layout,
               const RetinaNetBuffers& buffers, RunTimes* times)
      : PyramidHeadRun(parts, input, std::move(layout), buffers, times),
        weights_(parts.weights.retinanet),
        kernels_(ChooseRowKernels(parts.context.compute)),
        row_bytes_(config_.width * ElementBytes(parts.context.compute)) {}

  static RetinaNetBuffers Carve(const HeadParts& parts, const PyramidLayout& layout, bool masks,
                                Carver& carver);
  static EncoderWork Work(const HeadParts& parts, const PyramidLayout& layout, int detections,
                          bool masks);

  bool Advance() override;

 private:
  // Convolution `i` of a tower, between the two buffers; the first reads the pyramid.
  void Tower(const std::vector<Convolution>& tower, int i);
  const std::byte* TowerEnd() const { return buffers_.tower[(config_.retinanet.convs - 1) % 2]; }
  void Deltas();
  void Scores();
  void Choose();

  const RetinaNetWeights& weights_;
  const RowKernels& kernels_;
  const int64_t row_bytes_;
  bool pyramid_done_ = false;
  int step_ = 0;
  std::vector<TopLogits> best_;  // By level.
};

RetinaNetBuffers RetinaNetRun::Carve(const HeadParts& parts, const PyramidLayout& layout, bool,
                                     Carver& carver) {
  const DetectorConfig& config = parts.config;
  const int64_t element = ElementBytes(parts.context.compute), width = config.width;
  const int64_t anchors = config.anchors(0);
  const int64_t top_channels = parts.weights.pyramid.further[0].channels();
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * element));
  };
  RetinaNetBuffers b;
  b.pyramid.levels = take(layout.rows * width);
  b.tower[0] = b.pyramid.fused = take(layout.rows * width);
  b.tower[1] = take(layout.rows * width);
  b.pyramid.top = take(layout.levels[layout.fused - 1].rows() * top_channels);
  b.panel = take(kPanelRows * std::max(PyramidPanelWidth(parts.weights.pyramid), 9 * width));
  b.deltas = carver.Take<float>(layout.rows * 4 * anchors);
  b.scores = carver.Take<float>(kPanelRows * anchors * config.classes());
  return b;
}

EncoderWork RetinaNetRun::Work(const HeadParts& parts, const PyramidLayout& layout, int, bool) {
  const RetinaNetWeights& head = parts.weights.retinanet;
  EncoderWork work;
  for (const auto* tower : {&head.class_tower, &head.box_tower}) {
    for (const Convolution& conv : *tower) work += LinearWork(conv.layer, layout.rows);
  }
  work += LinearWork(head.classes->layer, layout.rows);
  work += LinearWork(head.boxes->layer, layout.rows);
  return work;
}

bool RetinaNetRun::Advance() {
  if (!pyramid_done_) {
    pyramid_done_ = !pyramid_.Advance();
    return true;
  }
  const int convs = config_.retinanet.convs, step = step_++;
  if (step < convs) {
    Tower(weights_.box_tower, step);
  } else if (step == convs) {
    Deltas();
  } else if (step <= 2 * convs) {
    Tower(weights_.class_tower, step - convs - 1);
  } else {
    Scores();
    Choose();
  }
  return step <= 2 * convs;
}

void RetinaNetRun::Tower(const std::vector<Convolution>& tower, int i) {
  const Convolution& conv = tower[i];
  const std::byte* from = i == 0 ? buffers_.pyramid.levels : buffers_.tower[(i - 1) % 2];
  std::byte* to = buffers_.tower[i % 2];
  const std::vector<float> zeros(config_.width);
  Convolve(conv, from, layout_.levels, layout_.levels, panels_, [&](int64_t row, std::byte* y) {
    kernels_.bias_act(y, conv.layer.bias.data(), config_.width, Activation::kRelu);
    kernels_.bias_copy(y, zeros.data(), config_.width, to + row * row_bytes_);
  });
}

void RetinaNetRun::Deltas() {
  const Convolution& conv = *weights_.boxes;
  Convolve(conv, TowerEnd(), layout_.levels, layout_.levels, panels_,
           [&](int64_t row, const std::byte* y) {
             const int64_t out = conv.layer.out();
             kernels_.bias_widen(y, conv.layer.bias.data(), out, buffers_.deltas + row * out);
           });
}

// A panel's logits, then the candidates among them, in the order of rows.
void RetinaNetRun::Scores() {
  const Convolution& conv = *weights_.classes;
  const int64_t out = conv.layer.out();
  const int64_t out_bytes = out * ElementBytes(conv.layer.linear.compute());
  const size_t limit = static_cast<size_t>(config_.retinanet.candidates);
  best_.assign(layout_.levels.size(), TopLogits(limit, LogitFloor(input_.score_threshold)));
  size_t level = 0;
  const auto gather = [&](int64_t row, std::byte* to) {
    GatherTaps(conv, TowerEnd(), layout_.levels, layout_.levels, row, to);
  };
  const auto use = [&](int64_t first, int64_t count, int, const std::byte* y) {
    panels_.Each(count, [&](long i) {
      kernels_.bias_widen(y + i * out_bytes, conv.layer.bias.data(), out,
                          buffers_.scores + i * out);
    });
    const Stopwatch watch(choosing_);
    for (int64_t i = 0; i < count; ++i) {
      while (first + i >= layout_.levels[level].row0 + layout_.levels[level].rows()) ++level;
      const int64_t row = first + i - layout_.levels[level].row0;
      best_[level].Offer(buffers_.scores + i * out, out, row * out);
    }
  };
  ForEachGatheredPanel(conv.layer, conv.layer.linear.sizes(), layout_.rows, panels_, gather, use);
}

// Boxes are not clipped before suppression.
void RetinaNetRun::Choose() {
  const Stopwatch watch(choosing_);
  const int classes = config_.classes();
  std::vector<ScoredBox> candidates;
  for (size_t level = 0; level < layout_.levels.size(); ++level) {
    const MapRows& map = layout_.levels[level];
    const AnchorGrid grid(CellAnchors(config_.anchor_sizes[level], config_.anchor_ratios[level]),
                          config_.stride(level), config_.anchor_offset);
    for (const TopLogits::Entry& entry : best_[level].Take()) {
      const float score = Sigmoid(entry.logit);
      if (!(score > input_.score_threshold)) continue;
      const int64_t anchor_index = entry.index / classes;
      const int64_t row = anchor_index / grid.count();
      const int anchor = static_cast<int>(anchor_index % grid.count());
      const float* deltas = buffers_.deltas + (map.row0 * grid.count() + anchor_index) * 4;
      const Box reference =
          grid.At(static_cast<int>(row / map.width), static_cast<int>(row % map.width), anchor);
      const Box box = DecodeBox(reference, deltas, config_.retinanet.weights);
      if (!IsFinite(box)) continue;
      candidates.push_back({box, score, static_cast<int>(entry.index % classes), 0});
    }
  }
  for (const ScoredBox& kept :
       KeepBest(std::move(candidates), config_.overlap, static_cast<size_t>(input_.detections))) {
    Keep(kept);
  }
}

}  // namespace

std::unique_ptr<DetectorHead> MakeRetinaNetHead(const DetectorConfig& config,
                                                const DetectorWeights& weights,
                                                const HeadContext& context) {
  return std::make_unique<FramedHead<RetinaNetRun>>(HeadParts{config, weights, context});
}

}  // namespace longview::models
