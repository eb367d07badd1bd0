// config.json of detectors on Vision Longformer and its descendants: RetinaNet (Lin et al. 2017)
// and Mask R-CNN (He et al. 2017) as detectron2 computes them (meta-architectures RetinaNet and
// GeneralizedRCNN with StandardROIHeads), over a feature pyramid (FPN).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/config/serving_config.h"
#include "models/vision/family.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

using BoxWeights = std::array<float, 4>;  // Divide (dx, dy, dw, dh).

struct RetinaNetConfig {
  int convs = 4;  // In each tower.
  BoxWeights weights = {1, 1, 1, 1};
  int candidates = 1000;  // Per level, before suppression.
};

struct MaskRcnnConfig {
  BoxWeights proposal_weights = {1, 1, 1, 1};
  int proposals_per_level = 1000;
  int proposals = 1000;  // Proposals for the box head.
  float proposal_overlap = 0.7f;
  int box_bins = 7;
  int box_layers = 2;
  int box_width = 1024;
  BoxWeights box_weights = {10, 10, 5, 5};
  int mask_bins = 14;  // A mask has twice as many pixels a side.
  int mask_convs = 4;
  int mask_width = 256;
  float mask_threshold = 0.5f;
};

struct DetectorConfig {
  enum class Kind { kRetinaNet, kMaskRcnn };

  Kind kind = Kind::kRetinaNet;
  std::string architecture;
  std::vector<std::string> labels;  // Without background.
  std::vector<int> stages;          // Backbone stages that enter the pyramid; from 0, ascending.
  std::vector<int> strides;         // Theirs, powers of two that double.
  int width = 256;                  // Channels of the pyramid.
  bool average = false;             // Fusion halves each sum.
  // By pyramid level.
  std::vector<std::vector<float>> anchor_sizes, anchor_ratios;
  float anchor_offset = 0;  // In strides.
  float score_threshold = 0.05f;
  float overlap = 0.5f;  // Two boxes of a class above it: the lower-scored goes.
  int detections = 100;
  RetinaNetConfig retinanet;
  MaskRcnnConfig mask_rcnn;

  int classes() const { return static_cast<int>(labels.size()); }
  bool has_masks() const { return kind == Kind::kMaskRcnn; }
  // RetinaNet adds two levels above the backbone's, Mask R-CNN one.
  size_t levels() const { return stages.size() + (kind == Kind::kRetinaNet ? 2 : 1); }
  int stride(size_t level) const { return strides[0] << level; }
  int anchors(size_t level) const {
    return static_cast<int>(anchor_sizes[level].size() * anchor_ratios[level].size());
  }
};

// `backbone` says which maps there are. INVALID_ARGUMENT names the key, the value and what is
// allowed.
absl::StatusOr<DetectorConfig> ParseDetectorConfig(const nlohmann::json& config,
                                                   const CommonConfig& common,
                                                   const ServingConfig& serving,
                                                   const VisionFacts& backbone,
                                                   const std::string& origin);

}  // namespace longview::models
