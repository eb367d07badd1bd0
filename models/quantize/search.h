// How few linears must stay in the compute type for an int8 model to hold its bounds.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace longview::models {

// The least number of linears, from 1 to `all`, of which the first so many by damage are kept such
// that `holds`; nothing if not even `all` do. Doubles, then bisects: what holds with some is taken
// to hold with more. `holds` is asked about a number at most once, and its error is the result.
absl::StatusOr<std::optional<size_t>> LeastKept(
    size_t all, absl::FunctionRef<absl::StatusOr<bool>(size_t kept)> holds);

}  // namespace longview::models
