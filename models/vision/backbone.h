// A family of image models as the lower part of another: its stage maps, no head.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/dense/compute.h"
#include "models/model_directory.h"
#include "models/vision/family.h"

namespace longview::models {

// Where a backbone's tensors lie in a checkpoint that holds more.
struct BackbonePlace {
  std::string prefix;               // Of every name: "backbone.bottom_up."
  std::vector<std::string> others;  // Patterns of tensors that are somebody else's.
};

// What a backbone would be, from configuration, names and shapes.
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
  absl::StatusOr<std::unique_ptr<VisionFamily>> (*build)(const ModelDirectory& directory,
                                                         const BackbonePlace& place,
                                                         Compute compute);
};

}  // namespace longview::models
