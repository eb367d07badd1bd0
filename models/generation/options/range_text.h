// The bounds of an option in words for errors.
#pragma once

#include <string>

namespace longview::models {

// "0.5 is not in [1, 2]", "0 is not in (0, 1]" (where `min` is the least number above 0), and
// without bounds that are those of a type, "-1 is not at least 0". NaN is in no range.
std::string OutsideText(double value, double min, double max);

// "a number in [0, 1]", "a number of at least 0", "a number above 0".
std::string NumberText(double min, double max);

}  // namespace longview::models
