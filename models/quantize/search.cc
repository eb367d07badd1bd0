#include "models/quantize/search.h"

#include <algorithm>

#include "models/status_macros.h"

namespace longview::models {

absl::StatusOr<std::optional<size_t>> LeastKept(
    size_t all, absl::FunctionRef<absl::StatusOr<bool>(size_t kept)> holds) {
  size_t fails = 0;  // With none kept, which is why it is searched.
  size_t works = 0;
  for (size_t kept = 1; works == 0; kept *= 2) {
    kept = std::min(kept, all);
    if (kept == fails) return std::nullopt;  // All of them.
    ASSIGN_OR_RETURN(const bool good, holds(kept));
    (good ? works : fails) = kept;
  }
  while (works - fails > 1) {
    const size_t middle = fails + (works - fails) / 2;
    ASSIGN_OR_RETURN(const bool good, holds(middle));
    (good ? works : fails) = middle;
  }
  return works;
}

}  // namespace longview::models
