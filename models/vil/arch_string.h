// The architecture string of Vision Longformer and its Long-Short descendant.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::models {

// One stage: its number by key letter. A repeated key: the last one counts; letters that no reader
// asks for are kept and ignored, as in the original.
using ArchStage = std::map<char, int>;

// Three or four stages, "l" equal to their place where it is given. INVALID_ARGUMENT names the
// part that is wrong.
absl::StatusOr<std::vector<ArchStage>> ParseArchString(std::string_view text);

// The value of `key`, or `fallback`. REQUIRES nothing of the range.
int ArchValue(const ArchStage& stage, char key, int fallback);

}  // namespace longview::models
