// The files of sentence-transformers in a model directory: modules behind the encoder, prompts,
// limits, the activation of a cross-encoder's scores, in the forms of release 2 to 6.
// Thread-safe: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/config/json_reader.h"
#include "models/config/transformer_module.h"

namespace longview::models {

// How the rows of a document's tokens become one vector; by the library's names.
enum class PoolMode { kCls, kMax, kMean, kMeanSqrt, kWeightedMean, kLastToken };

// "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken".
std::optional<PoolMode> ParsePoolMode(std::string_view name);
std::string_view PoolModeName(PoolMode mode);

// The activation at the end of a Dense module.
enum class DenseActivation { kIdentity, kTanh, kRelu, kGelu, kSilu, kSigmoid };

// A module behind the transformer, over each token's row before Pooling, over the vector behind it.
struct SentenceStep {
  enum class Kind { kDense, kNormalize };

  Kind kind = Kind::kNormalize;
  bool tokens = false;
  std::string path;  // The folder of a Dense.
  int64_t in = 0, out = 0;
  bool bias = true;
  DenseActivation activation = DenseActivation::kIdentity;
};

struct SentenceModules {
  std::vector<PoolMode> pooling;    // Side by side; empty: there is no Pooling module.
  bool include_prompt = true;       // Whether a prompt's tokens are pooled.
  std::vector<SentenceStep> steps;  // In order; those over tokens first.
  bool multi_vector = false;        // Answers are the tokens' rows.

  bool HasDense(bool tokens) const;
  // Whether the last thing that happens to a vector is Normalize.
  bool normalizes() const {
    return !steps.empty() && !steps.back().tokens &&
           steps.back().kind == SentenceStep::Kind::kNormalize;
  }
  // Numbers of an embedding, or of a token's row, where the encoder's rows are `width` wide.
  int64_t width_of_answers(int64_t width) const;
};

// How a cross-encoder's logit becomes a score.
enum class ScoreActivation { kSigmoid, kTanh, kIdentity };

struct SentenceConfig {
  // Absent: the directory has no modules. An error: modules that are not served, by name.
  absl::StatusOr<std::optional<SentenceModules>> modules = std::optional<SentenceModules>();
  std::map<std::string, std::string> prompts;
  std::string default_prompt;         // A key of `prompts`, or "".
  std::optional<int64_t> dimensions;  // truncate_dim
  TextLimits limits;
  // An error: a name that is not served.
  absl::StatusOr<ScoreActivation> score_activation = ScoreActivation::kSigmoid;
};

// `config` is a reader on the whole of config.json. Files that cannot be read at all are errors;
// what only embeddings or scores need is in their fields, so that other tasks are served.
absl::StatusOr<SentenceConfig> ReadSentenceConfig(const std::string& directory,
                                                  const JsonReader& config);

}  // namespace longview::models
