// The weights of a CvT*-LS, packed for this machine: names of the backbone's repository
// (rishikksh20/convolution-vision-transformers) and of ViL-LS's attention.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/cvt_ls/config.h"
#include "models/dense/layer.h"
#include "models/layers/weight_loader.h"
#include "models/vision/backbone.h"

namespace longview::models {

inline constexpr int kDepthwiseTaps = 9;

// A 3 x 3 depthwise convolution with a border of zeros, then a linear over channels. Normalisation
// of the kernels is folded in.
struct Separable {
  std::vector<float> taps;  // [9, C]
  std::vector<float> bias;  // [C]
  std::optional<DenseLayer> pointwise;
};

struct CvtBlock {
  Norm attention_norm;
  Separable query, key, value;
  // [h r, C] scores; values' own only without shared landmarks. Empty without landmarks.
  Separable landmarks, value_landmarks;
  Norm token_norm, landmark_norm;  // Of keys and values, all heads together; empty without.
  std::optional<DenseLayer> out;   // Empty where attention's output is added as it is.
  Norm mlp_norm;
  std::optional<DenseLayer> expand;    // [hidden, C]
  std::optional<DenseLayer> contract;  // [C, hidden]
};

struct CvtStageWeights {
  // [C, k k c]: columns are (row, column, channel); in the first stage (channel, row, column).
  std::optional<DenseLayer> embed;
  Norm embed_norm;  // Empty without.
  std::vector<CvtBlock> blocks;
  PanelSizes sizes;  // Panels that every linear of the blocks allows.
};

struct CvtWeights {
  std::array<CvtStageWeights, kCvtStages> stages;
  std::vector<float> class_token;  // [C] of the last stage; empty without.
  Norm norm;
  std::optional<DenseLayer> head;
  double parameters = 0;
  double memory_bytes = 0;
};

// `place`: where a backbone's tensors lie (config.backbone), else null. REQUIRES: `checkpoint`
// outlives the call. Errors name the tensor. Without `compute` names and shapes are checked,
// nothing is read.
absl::StatusOr<CvtWeights> LoadCvtWeights(const CvtConfig& config, const BackbonePlace* place,
                                          const Checkpoint& checkpoint, const std::string& origin,
                                          std::optional<Compute> compute);

// Standardises a depthwise kernel [C, 9] channel by channel.
void StandardiseKernels(CvtStandard standard, std::vector<float>& kernels);

}  // namespace longview::models
