// InspectDirectory of model.h for what the flags say of every model.
#pragma once

#include <string>

#include "models/model.h"

namespace longview::models {

// `options`: task, dtype and device, as they would be for LoadModel.
Inspection InspectDirectory(const std::string& directory, const LoadOptions& options);

}  // namespace longview::models
