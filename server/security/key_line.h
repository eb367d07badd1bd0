// One line of a key file.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/security/roles.h"

namespace longview::server {

// Borrows the line. Limits that it does not give are unset.
struct KeyLine {
  std::string_view name;
  std::string_view key;
  Roles roles = Roles::All();
  bool names_metrics = false;  // `role` is there, and has it.
  std::optional<int> max_inflight;
  std::optional<double> tokens_per_second;
  std::optional<double> weight;
};

// `line`: without blanks around it, no comment. INVALID_ARGUMENT names the part that is wrong and
// never repeats what it holds. Thread-safe.
absl::StatusOr<KeyLine> ParseKeyLine(std::string_view line);

}  // namespace longview::server
