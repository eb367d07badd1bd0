#include "models/cst/model.h"

#include <utility>

#include "models/cst/family.h"

namespace longview::models {

absl::StatusOr<ModelInfo> DescribeCst(const ModelDirectory& directory) {
  return DescribeFamily<Cst>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadCst(ModelDirectory directory,
                                               const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, BuildFamily<Cst>, BuildPassOnDevice<Cst>);
}

}  // namespace longview::models
