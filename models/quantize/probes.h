// Requests that show what int8 does to a model: its own task on the user's texts or pictures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/quantize/inputs.h"

namespace longview::models {

// How the answers of a probe are compared (verdict.h).
enum class Comparison {
  kTop1,          // The best class.
  kMaskTop1,      // The best token of each mask.
  kSpan,          // The best answer.
  kLabels,        // Each token's label.
  kCosine,        // Embeddings.
  kRanking,       // Documents of a query, by their scores.
  kBitsPerByte,   // How likely a text is.
  kBitsPerToken,  // How likely the exact model's own output is.
  kBoxes,         // Objects of a picture.
};

struct Probe {
  Comparison comparison = Comparison::kTop1;
  Request request = {};
  std::string picture = "";  // The file of the request's picture; empty: none.
  int query = 0;             // kRanking: which of them.
};

// Bytes of a text that count for language models, which read it whole.
inline constexpr size_t kMostScoredBytes = size_t{32} << 10;
// A query is the beginning of each of so many texts, and ranks so many of them.
inline constexpr size_t kMostQueries = 10;
inline constexpr size_t kMostDocuments = 32;
// The longest output of an encoder-decoder that is scored.
inline constexpr int kOutputTokens = 32;

// Probes of the model's first task: a reranker, where it is one, else what `info.task` says. Texts
// that are too long are cut. INVALID_ARGUMENT where the inputs are none of this model's kind.
absl::StatusOr<std::vector<Probe>> MakeProbes(const ModelInfo& info, const GivenInputs& inputs);

// The request for the model's own greedy output, which a probe of kBitsPerToken then scores.
Request OutputRequest(const Probe& probe);

}  // namespace longview::models
