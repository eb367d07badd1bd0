#include "models/transformer_ls_text/model.h"

#include <utility>

#include "models/encoder/device_model.h"
#include "models/transformer_ls_text/family.h"

namespace longview::models {

absl::StatusOr<ModelInfo> DescribeLsText(const ModelDirectory& directory) {
  return DescribeFamily<LsText>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadLsText(ModelDirectory directory,
                                                  const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, BuildFamily<LsText>,
                     BuildPassOnDevice<LsText>);
}

}  // namespace longview::models
