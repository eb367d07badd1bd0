// The model families, found by the architecture that config.json names (architectures[0]).
//
// A family is one folder of models/ with one function of this shape; the registry's list is the
// only place that names them all.
// Thread-safe: the list is constant.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/model.h"

namespace longview::models {

struct Family {
  std::string_view name;                            // "longformer"
  std::span<const std::string_view> architectures;  // HuggingFace's class names.

  // Describes the model from the configuration and from the names, shapes and types of the
  // tensors, which are all checked here; no weights are read. Fields that only loading decides
  // (dtype, device, memory_bytes) stay empty.
  absl::StatusOr<ModelInfo> (*describe)(const ModelDirectory& directory);

  // The model on `device`, null or where it cannot run there: on the CPU, which a note says.
  // `notes` are the device's, for ModelInfo.
  absl::StatusOr<std::unique_ptr<Model>> (*load_at)(std::unique_ptr<Device> device,
                                                    ModelDirectory directory,
                                                    const LoadOptions& options,
                                                    std::vector<std::string> notes);
};

// The family of `common.architecture`; where config.json names a class that is not served, that of
// its model_type's base class, which `directory` then is. INVALID_ARGUMENT names the class, the
// file and what --task can choose.
absl::StatusOr<const Family*> ChooseFamily(ModelDirectory& directory);

}  // namespace longview::models
