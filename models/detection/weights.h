// The weights of a detector behind its backbone, packed for this machine, named as detectron2 names
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/detection/config.h"
#include "models/layers/map_rows.h"
#include "models/vision/backbone.h"

namespace longview::models {

struct PyramidWeights {
  // By stage of the pyramid, finest first.
  std::vector<DenseLayer> lateral;   // [width, stage channels]
  std::vector<Convolution> output;   // 3 x 3
  std::vector<Convolution> further;  // RetinaNet's two levels above: 3 x 3, stride 2.
};

struct RetinaNetWeights {
  std::vector<Convolution> class_tower, box_tower;  // 3 x 3, ReLU behind each.
  std::optional<Convolution> classes;               // Outputs (anchor, class).
  std::optional<Convolution> boxes;                 // Outputs (anchor, delta).
};

struct MaskRcnnWeights {
  std::optional<Convolution> proposal_conv;
  std::optional<DenseLayer> proposals;    // [A + 4 A, width]: objectness, then deltas.
  std::vector<DenseLayer> box_layers;     // The first reads (row, column, channel) of a region.
  std::optional<DenseLayer> box_outputs;  // [(K + 1) + 4 K, box width]: logits, then deltas.
  std::vector<Convolution> mask_convs;
  std::optional<DenseLayer> mask_up;  // [4 mask width, mask width]: (row, column, channel).
  std::vector<float> mask_classes;    // [K, mask width]
  std::vector<float> mask_bias;       // [K]
};

struct DetectorWeights {
  PyramidWeights pyramid;
  RetinaNetWeights retinanet;
  MaskRcnnWeights mask_rcnn;
  double parameters = 0;
  double memory_bytes = 0;
};

// Prefix of the backbone's tensors, and the names that it leaves to the detector.
BackbonePlace DetectorBackbonePlace();

// `channels` are those of config.stages. REQUIRES: `checkpoint` outlives the call. Errors name the
// tensor; tensors of the backbone are not looked at.
absl::StatusOr<DetectorWeights> LoadDetectorWeights(const DetectorConfig& config,
                                                    const std::vector<int>& channels,
                                                    const Checkpoint& checkpoint,
                                                    const std::string& origin, Compute compute);

// LoadDetectorWeights' checks on names and shapes, without reading weights. Returns the parameters.
absl::StatusOr<double> CheckDetectorWeights(const DetectorConfig& config,
                                            const std::vector<int>& channels,
                                            const Checkpoint& checkpoint,
                                            const std::string& origin);

}  // namespace longview::models
