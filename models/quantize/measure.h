// Runs probes through a model, one by one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/quantize/outcome.h"
#include "models/quantize/probes.h"

namespace longview::models {

struct Measured {
  std::vector<Outcome> outcomes;  // One for each probe.
  double seconds = 0;             // A probe takes, on average, from its tokens to its answer.
};

// Told after each probe.
using MeasureProgress = absl::FunctionRef<void(size_t done, size_t all)>;

// Gives each probe of kBitsPerToken the model's own output to score, takes out what the model
// refuses (masks that a text does not have, silently; else with one note), and measures the rest.
// `model` is the exact one. INVALID_ARGUMENT where nothing is left.
absl::StatusOr<Measured> MeasureFirst(Model& model, std::vector<Probe>& probes,
                                      std::vector<std::string>& notes, MeasureProgress progress);

// The outcomes of another form of that model. REQUIRES: MeasureFirst has seen the probes.
absl::StatusOr<Measured> Measure(Model& model, const std::vector<Probe>& probes,
                                 MeasureProgress progress);

}  // namespace longview::models
