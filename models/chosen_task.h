// Loading and inspecting a directory for a task that its files do not name, or name otherwise: the
// class of the model is the one of HuggingFace's that has a head for the task.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/model.h"

namespace longview::models {

// LoadModel and InspectDirectory; `task` overrides config.json and longview.json. INVALID_ARGUMENT
// for a family whose classes are not known by task.
absl::StatusOr<std::unique_ptr<Model>> LoadModelAs(std::optional<Task> task,
                                                   const std::string& directory,
                                                   const LoadOptions& options);
Inspection InspectDirectoryAs(std::optional<Task> task, const std::string& directory);

}  // namespace longview::models
