// Devices that a wish such as "cuda:0,cuda:1" names, given what a machine has. Pure; FindDevices of
// model.h asks the machine first.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/model.h"

namespace longview::models {

// `found`: the CUDA devices there are, as people call them. `why_none`: why there are none.
absl::StatusOr<Devices> ChooseDevices(std::string_view wanted, std::span<const std::string> found,
                                      std::string_view why_none);

// Number N of a device "cuda:N"; -1 for "cpu".
int CudaIndex(std::string_view device);

}  // namespace longview::models
