#include "models/longformer/model.h"

#include <utility>

#include "models/longformer/family.h"

namespace longview::models {

absl::StatusOr<ModelInfo> DescribeLongformer(const ModelDirectory& directory) {
  return DescribeFamily<Longformer>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadLongformer(ModelDirectory directory,
                                                      const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, BuildFamily<Longformer>,
                     BuildPassOnDevice<Longformer>);
}

}  // namespace longview::models
