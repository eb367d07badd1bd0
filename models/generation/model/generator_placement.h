// Where a generator runs, and what of its loading follows from that.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/generation/model/generator_loading.h"

namespace longview::models {

// As StartGeneratorOn the CPU (`device` null) or the device, whose compute types are others.
// INVALID_ARGUMENT for a dtype that is not served, too. `notes` are put in front of those of the
// choice.
absl::StatusOr<GeneratorStart> StartGeneratorAt(const Device* device,
                                                const ModelDirectory& directory,
                                                const LoadOptions& options, ModelInfo info,
                                                std::vector<std::string> notes = {});

// Rows of 16-bit numbers are copied word by word: INVALID_ARGUMENT if the width is odd on a device.
absl::Status CheckWidth(const Device* device, int64_t width, const ModelDirectory& directory);

}  // namespace longview::models
