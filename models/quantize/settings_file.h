// Writes dtype and int8_keep into a directory's longview.json.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longview::models {

// The text of longview.json with "dtype": "int8" and these linears under "int8_keep", sorted; what
// else it has stays, in its order. Errors as of a model that is loaded.
absl::StatusOr<std::string> Int8Settings(const std::string& directory,
                                         std::vector<std::string> kept);

// Whether longview.json can be written there: PERMISSION_DENIED says why not.
absl::Status CheckWritable(const std::string& directory);

// Puts the text in the place of longview.json at once: readers see the old one or the new one.
absl::Status WriteSettings(const std::string& directory, const std::string& text);

}  // namespace longview::models
