// Keeps of a model's answer to a probe as much as is compared.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/quantize/probes.h"

namespace longview::models {

struct Outcome {
  // The best class; of each token its label; of each mask its token; first and last of the span.
  std::vector<int64_t> choices;
  std::vector<float> vectors;  // Embeddings, one behind the other.
  int64_t width = 0;           // Numbers of each.
  double score = 0;            // A document's.
  double bits = 0;             // All that is scored has, base 2.
  double scored = 0;           // Its bytes, or tokens.
  std::vector<Detection> boxes;
};

// Vectors of a text that has one for each token: so many, evenly spaced.
inline constexpr size_t kMostVectors = 64;

// INTERNAL for an answer that has a NaN or an infinity.
absl::StatusOr<Outcome> OutcomeOf(const Probe& probe, const Answer& answer);

}  // namespace longview::models
