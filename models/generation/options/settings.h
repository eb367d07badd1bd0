// One request's generation options, merged over every source and checked: what sampling, search and
// stopping work with.
// Thread-safe: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/generation.h"

namespace longview::models {

enum class EarlyStopping { kNo, kYes, kNever };

// Names and meanings are HuggingFace's (generation/configuration_utils.py); every field is set and
// in range. Lengths count all tokens of a sequence, the prompt's included.
struct GenerationSettings {
  int max_new_tokens = 0;
  int min_new_tokens = 0;
  int min_length = 0;
  int max_length = 0;  // Prompt and max_new_tokens.

  bool sample = false;
  double temperature = 1;
  int top_k = 0;  // 0 = off
  double top_p = 1;
  double min_p = 0;
  double typical_p = 1;
  double epsilon_cutoff = 0;
  double eta_cutoff = 0;
  bool renormalize = false;
  uint32_t seed = 0;

  double repetition_penalty = 1;
  double encoder_repetition_penalty = 1;
  double frequency_penalty = 0;  // OpenAI's: a token loses it each time it was generated.
  double presence_penalty = 0;   // OpenAI's: a token that was generated loses it once.
  int no_repeat_ngram = 0;
  int encoder_no_repeat_ngram = 0;
  std::vector<std::vector<int32_t>> bad_words;
  std::vector<int32_t> suppress, begin_suppress;
  std::optional<int32_t> forced_bos;
  std::vector<int32_t> forced_eos;
  struct Decay {
    int start = 0;  // Generated tokens from which the end gets likelier.
    double factor = 1;
  };
  std::optional<Decay> decay;
  struct Bias {
    std::vector<int32_t> ids;
    double bias = 0;
  };
  std::vector<Bias> sequence_bias;
  bool remove_invalid = false;

  std::vector<int32_t> eos;  // Empty where the end is ignored.
  std::vector<int32_t> stop_ids;
  std::vector<std::string> stop;

  int sequences = 1;
  int beams = 1;
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::kNo;
  // The search is fairseq's (SequenceGenerator) where that parts from HuggingFace's: a forced end
  // keeps its own score, and of outputs that end in one step those come first that rank first.
  bool fairseq = false;

  std::optional<int> logprobs;
  bool echo = false;
};

// The facts that limits and defaults depend on beside the options.
struct SettingsContext {
  int vocab = 0;
  int prompt = 0;                   // Tokens before the first generated one.
  int room = 0;                     // Tokens that can follow them.
  int default_new_tokens = 16;      // Used without any option; cut to the room.
  int default_top_k = 0;            // Used when sampling with GenerationDefaults::kHuggingFace.
  const std::vector<int32_t>* eos;  // Used without any option.
  // Tokens of the document, for a model whose options and search are fairseq's: max_len_a and
  // max_len_b bound an output by it, the forced end not counted, and min_length counts generated
  // tokens only.
  std::optional<int> fairseq_source = std::nullopt;
};

inline constexpr int kMostStops = 16;
inline constexpr int kMostStopBytes = 1024;  // Limit of one stop string.
inline constexpr int kMostSequences = 128;
inline constexpr int kMostBeams = 64;
inline constexpr int kMostLogprobs = 20;

// Every option of `over`, and `under`'s where it has none. Options that mean one thing together
// (max_new_tokens and max_length; both forms of early_stopping) are taken from one of them.
GenerationOptions MergeOptions(GenerationOptions over, const GenerationOptions& under);

// INVALID_ARGUMENT "option: value, limit". `model` = the model's own defaults.
absl::StatusOr<GenerationSettings> ResolveSettings(const GenerationOptions& request,
                                                   const GenerationOptions& model,
                                                   const SettingsContext& context);

}  // namespace longview::models
