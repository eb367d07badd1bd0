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
#include "models/cvt_ls/convolve.h"
#include "models/dense/layer.h"
#include "models/dense/weight_format.h"
#include "models/ops/weight_placer.h"
#include "models/vision/backbone.h"

namespace longview::models {

// Normalisation of depthwise kernels is folded in. Parts that a model lacks are empty.
struct CvtBlock {
  NormWeight attention_norm;
  Separable query, key, value;
  // [h r, C] scores; values' own only without shared landmarks. Empty without landmarks.
  Separable landmarks, value_landmarks;
  NormWeight token_norm, landmark_norm;  // For keys and values, all heads together.
  Weight out;                            // Empty where attention's output is added as it is.
  NormWeight mlp_norm;
  Weight expand;    // [hidden, C]
  Weight contract;  // [C, hidden]
};

struct CvtStageWeights {
  // [C, k k c]: columns are (row, column, channel); in the first stage (channel, row, column).
  Weight embed;
  NormWeight embed_norm;
  std::vector<CvtBlock> blocks;
};

// The stages are where the model runs; the head is on the host.
struct CvtWeights {
  std::array<CvtStageWeights, kCvtStages> stages;
  Table class_row;  // [1, C] of the last stage.
  NormWeight norm;
  std::optional<DenseLayer> head;
  double parameters = 0;
  double memory_bytes = 0;
};

// `place`: where a backbone's tensors lie (config.backbone), else null. REQUIRES: `checkpoint`
// outlives the call. Errors name the tensor. Without `format` names and shapes are checked, and
// the weights have sizes alone. With a store the stages are in a device's memory, see WeightPlacer;
// `format` is the head's type then.
absl::StatusOr<CvtWeights> LoadCvtWeights(const CvtConfig& config, const BackbonePlace* place,
                                          const Checkpoint& checkpoint, const std::string& origin,
                                          std::optional<WeightFormat> format, DeviceStore* store);

// Standardises a depthwise kernel [C, 9] channel by channel.
void StandardiseKernels(CvtStandard standard, std::vector<float>& kernels);

}  // namespace longview::models
