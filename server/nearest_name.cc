#include "server/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace longview::server {
namespace {

// A longer word is near to no name, and would cost its length for each of them.
constexpr size_t kLongest = 64;

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
                       std::span<const std::string_view> names) {
  if (mistyped.size() > kLongest) return "";
  std::string_view nearest;
  size_t least = std::max<size_t>(1, mistyped.size() / 3) + 1;
  for (const std::string_view name : names) {
    const size_t distance = EditDistance(mistyped, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  if (nearest.empty()) return "";
  return std::string("; did you mean ").append(before).append(nearest).append("?");
}

}  // namespace longview::server
