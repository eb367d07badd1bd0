// Where `detect --draw` puts its pictures.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::client {

// The PNG file of each input path. One input goes to the file `target`, unless that is a directory;
// in a directory (made if `target` ends with a slash) each has its own name with .png for its
// ending, and a number where two have the same. Several inputs need a directory: INVALID_ARGUMENT
// else, or where it cannot be made.
absl::StatusOr<std::map<std::string, std::string>> PlacesOf(const std::vector<std::string>& inputs,
                                                            const std::string& target);

}  // namespace longview::client
