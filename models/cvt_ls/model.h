// CvT*-LS as a Model and as a detector's backbone.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/directory/model_directory.h"
#include "models/model.h"
#include "models/vision/backbone.h"

namespace longview::models {

// The functions of registry.h.
absl::StatusOr<ModelInfo> DescribeCvtLs(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadCvtLs(ModelDirectory directory,
                                                 const LoadOptions& options);

// "cvt_ls". Three stages: strides 4, 8, 16.
BackboneBuilder CvtLsBackbone();

}  // namespace longview::models
