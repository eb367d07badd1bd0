// A family of image models as the lower part of another: its stage maps, no head.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/dense/compute.h"
#include "models/directory/model_directory.h"
#include "models/vision/family.h"

namespace longview::models {

class Device;

// Where a backbone's tensors lie in a checkpoint that holds more.
struct BackbonePlace {
  std::string prefix;               // Begins every name: "backbone.bottom_up."
  std::vector<std::string> others;  // Patterns of tensors that are somebody else's.
};

// Facts of a backbone that would be built from this configuration, names and shapes.
struct BackboneFacts {
  VisionFacts facts;
  double parameters = 0;
};

// A family that serves as a backbone, by the name that config.json gives it ("backbone", else
// model_type). The directory outlives what is returned. Families built so answer TakeMaps; they
// have neither Embedding nor Logits.
struct BackboneBuilder {
  std::string_view name;
  absl::StatusOr<BackboneFacts> (*describe)(const ModelDirectory& directory,
                                            const BackbonePlace& place);
  // On a device, null: on the CPU. Of the options those of pictures count: the largest one is to
  // fit a device; RESOURCE_EXHAUSTED if a usual one does not. May throw DeviceError and what
  // LibTorch throws; within the Device::Turn.
  absl::StatusOr<std::unique_ptr<VisionFamily>> (*build)(const ModelDirectory& directory,
                                                         const BackbonePlace& place,
                                                         Compute compute,
                                                         std::unique_ptr<Device> device,
                                                         const LoadOptions& options);
};

}  // namespace longview::models
