// Tensors of a checkpoint that a model does not have, where it may leave them aside with a note, as
// HuggingFace's classes do with a warning.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace longview::models {

// The payload of WeightSource::Finish's error: the surplus tensors in words.
inline constexpr char kSurplusTensors[] = "longview/surplus-tensors";

// `finished`, but OK where surplus tensors are all that is wrong: they are named in `notes`.
absl::Status LeaveSurplusAside(const absl::Status& finished, std::vector<std::string>& notes);

}  // namespace longview::models
