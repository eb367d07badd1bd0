#include "models/generation/options/range_text.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

// Bounds of types: no client means them.
bool IsBound(double limit) {
  return limit < std::numeric_limits<int>::max() && limit > std::numeric_limits<int>::min();
}
bool IsLeastAboveZero(double limit) {
  return limit > 0 && limit <= std::numeric_limits<float>::min();
}

std::string Range(double min, double max) {
  return IsLeastAboveZero(min) ? absl::StrCat("in (0, ", max, "]")
                               : absl::StrCat("in [", min, ", ", max, "]");
}

}  // namespace

std::string OutsideText(double value, double min, double max) {
  if (IsBound(max)) return absl::StrCat(value, " is not ", Range(min, max));
  if (value > max) return absl::StrCat(value, " is more than a number of its type may be");
  if (IsLeastAboveZero(min)) return absl::StrCat(value, " is not above 0");
  if (IsBound(min)) return absl::StrCat(value, " is not at least ", min);
  return absl::StrCat(value, " is no number, or less than one of its type may be");
}

std::string NumberText(double min, double max) {
  if (IsBound(max)) return absl::StrCat("a number ", Range(min, max));
  if (IsLeastAboveZero(min)) return "a number above 0";
  return IsBound(min) ? absl::StrCat("a number of at least ", min) : "a number";
}

}  // namespace longview::models
