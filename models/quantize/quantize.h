// The quality gate of int8: which linears of a model may be int8, by what that changes on texts or
// pictures of the user's own.
//
// Beside model.h a part of the server's view of models: `longview-server --quantize` runs it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/quantize/inputs.h"

namespace longview::models {

struct QuantizeOptions {
  std::string directory;
  GivenFiles files;
  bool dry_run = false;  // Nothing is written.
  LoadOptions load;      // Element type, device and linears are the gate's to choose.
};

// Told what is done, and how much of it: "fp32", "int8 with 4 linears kept". Calls come from the
// caller's thread.
using QuantizeProgress = std::function<void(std::string_view step, size_t done, size_t all)>;

struct QuantizeResult {
  std::string report;  // Several lines for a person.
  std::string failed;  // Why int8 gains nothing here, one line; empty: it does.
};

// Compares the model in int8 with itself in fp32; where a bound fails, keeps the linears that int8
// damages most, as few as will do, and writes the choice to longview.json. Equal inputs give equal
// files. INVALID_ARGUMENT where the CPU has no int8, or for inputs that are none of the model's;
// PERMISSION_DENIED, before any work, for a directory that cannot be written. Not thread-safe:
// computes on all threads of the process.
absl::StatusOr<QuantizeResult> Quantize(const QuantizeOptions& options,
                                        const QuantizeProgress& progress);

}  // namespace longview::models
