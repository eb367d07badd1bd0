// Choosing the next tokens of a batch from logits that lie on the device: the order of operations
// of HuggingFace's generate, and the tokens that models/generation/sampling/sampler.h chooses.
//
// Scores are fp64, as there. Sums over the vocabulary add up in another order than the host's: a
// draw within the rounding of a token's border (some 1e-13 of the whole) may fall beyond it.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"

namespace longview::kernels::cuda {

inline constexpr int kMostReported = 20;  // Tokens of a report.

// One sequence. All pointers into device memory.
struct SampleRow {
  const float* logits;  // [vocab]

  // Repetition penalty of these ids: positive scores are divided by it, others multiplied.
  const int32_t* seen;  // [seen_count], each once.
  int32_t seen_count;
  int32_t banned_count;
  const int32_t* banned;  // [banned_count]
  double penalty;         // Positive.
  // Before that, biases[i] is added to the score of biased[i].
  const int32_t* biased;  // [biased_count], each once.
  const double* biases;
  int32_t biased_count;

  int32_t sample;  // 0: the first of the largest scores, and nothing of the following.
  int32_t top_k;   // 0: off.
  double temperature;
  double top_p;           // 1: off.
  double min_p;           // 0: off.
  double typical_p;       // 1: off.
  double epsilon_cutoff;  // 0: off.
  double eta_cutoff;      // 0: off.
  uint32_t seed;
  uint32_t sequence;  // The sample of a request.
  uint32_t step;      // Tokens generated before.

  // Most probable tokens to report, of the logits as they are; -1: not even the chosen one's
  // log-probability.
  int32_t reported;
};

enum class SampleStatus : int32_t {
  kChosen = 0,
  kNotNumbers,  // A logit is NaN.
  kNotFinite,   // The largest score is infinite, and the row samples.
  kNothingLeft  // The row samples, and every token is banned.
};

struct SampledToken {
  int32_t id;
  SampleStatus status;
  float logprob;  // If reported >= 0.
};

struct ReportedToken {
  int32_t id;
  float logprob;
};

struct SampleRows {
  const SampleRow* rows;  // [count]
  int32_t count;
  int32_t vocab;  // At least 1.
  // Workspace.
  double* scores;      // [count, vocab]
  float* weights;      // [count, vocab]
  SampledToken* out;   // [count]
  ReportedToken* top;  // [count, kMostReported], the best first, the lower id first among equals.
};

struct SamplingApi {
  Status (*sample)(Stream* stream, const SampleRows& args);
};

}  // namespace longview::kernels::cuda
