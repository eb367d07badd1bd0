// A family of image models as it is described and built: a model of its own, or the lower part of
// another, with its stage maps and no head.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/dense/weight_format.h"
#include "models/device/placement.h"
#include "models/directory/model_directory.h"
#include "models/vision/family.h"

namespace longview::models {

// Names of a backbone's tensors in a checkpoint that holds more.
struct BackbonePlace {
  std::string prefix;               // Begins every name: "backbone.bottom_up."
  std::vector<std::string> others;  // Patterns of tensors that are somebody else's.
};

// Facts of what would be built from this configuration, names and shapes.
struct BuiltFacts {
  VisionFacts facts;
  double parameters = 0;
};

// A family by the name that config.json gives it ("backbone", else model_type). `place`: of a
// backbone's tensors; null: a model of its own. The directory outlives what is returned. Backbones
// answer TakeMaps; they have neither Embedding nor Logits.
struct VisionBuilder {
  std::string_view name;
  absl::StatusOr<BuiltFacts> (*describe)(const ModelDirectory& directory,
                                         const BackbonePlace* place);
  // From the configuration alone.
  absl::StatusOr<DeviceObstacle> (*obstacle)(const ModelDirectory& directory,
                                             const BackbonePlace* place);
  // On a device, null: on the CPU. Of the options those of pictures count: the largest one is to
  // fit a device; RESOURCE_EXHAUSTED if a usual one does not. May throw DeviceError and what
  // LibTorch throws; within the Device::Turn. REQUIRES: no obstacle on a device.
  absl::StatusOr<std::unique_ptr<VisionFamily>> (*build)(const ModelDirectory& directory,
                                                         const BackbonePlace* place,
                                                         WeightFormat format,
                                                         std::unique_ptr<Device> device,
                                                         const LoadOptions& options);
};

// The image families of the registry, which serve as backbones too.
VisionBuilder VilBuilder();    // "vil"
VisionBuilder VilLsBuilder();  // "vil_ls"
VisionBuilder CvtLsBuilder();  // "cvt_ls". Three stages: strides 4, 8, 16.

}  // namespace longview::models
