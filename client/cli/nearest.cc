#include "client/cli/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::client {
namespace {

// Letters to change, add or leave out to make one word of the other (Levenshtein).
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string DidYouMean(std::string_view before, std::string_view mistyped,
                       const std::vector<std::string>& names) {
  // Longer words cost their product of lengths, and are near to nothing.
  constexpr size_t kLongest = 64;
  if (mistyped.size() > kLongest) return "";
  const std::string* nearest = nullptr;
  // Two letters that changed places are two changes.
  const size_t most = mistyped.size() < 4 ? 1 : std::max<size_t>(2, mistyped.size() / 3);
  size_t least = most + 1;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(mistyped, name);
    if (distance >= least) continue;
    least = distance;
    nearest = &name;
  }
  if (nearest == nullptr) return "";
  return absl::StrCat("; did you mean ", std::string(before), *nearest, "?");
}

}  // namespace longview::client
