// Options of a request to a generating model, and its outputs. Plain values; model.h includes
// this.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace longview::models {

// The defaults that count where neither the request nor the model's files say anything.
enum class GenerationDefaults {
  kHuggingFace,  // Greedy, one sequence, 16 new tokens (seq2seq: the decoder's limit).
  kOpenAi,       // temperature 1, 16 new tokens.
};

// Options by HuggingFace's names; unset = the model's (longview.json, then
// generation_config.json), then `defaults`. Values are checked by Model::Prepare, which names
// field, value and limit.
struct GenerationOptions {
  GenerationDefaults defaults = GenerationDefaults::kHuggingFace;

  // 0 = score the prompt: every sequence is empty and ends with "length".
  std::optional<int> max_new_tokens;
  std::optional<int> min_new_tokens;
  std::optional<bool> do_sample;      // Unset: true if `temperature` is given and above 0.
  std::optional<double> temperature;  // 0 = greedy.
  std::optional<double> top_p;
  std::optional<int> top_k;  // 0 = off.
  std::optional<double> repetition_penalty;
  std::optional<uint32_t> seed;  // Unset = drawn by Prepare.
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::optional<int> num_return_sequences;  // n.
  std::optional<int> num_beams;
  std::optional<double> length_penalty;
  std::optional<int> no_repeat_ngram_size;
  std::optional<bool> early_stopping;
  std::optional<int> logprobs;  // Alternatives per token; 0 = the token's own only.
  bool echo = false;            // The prompt comes back first.

  // Every other option by name, its value as JSON ("bad_words_ids": "[[5,7]]"). Prepare refuses
  // names it does not know.
  std::map<std::string, std::string> others;
};

// Whether SetOption takes the name.
bool IsGenerationOption(std::string_view name);

// Sets one option by HuggingFace's name (or `max_tokens`, `min_tokens`, `n`, `stop`) from a JSON
// value. Numbers, booleans and lists may also be written inside of a JSON string, as parameters of
// the Open Inference Protocol are; null leaves the option unset. INVALID_ARGUMENT names the
// option and the value: an unknown name, a wrong type, the same option a second time. Ranges are
// Model::Prepare's business.
absl::Status SetOption(GenerationOptions& options, std::string_view name, std::string_view json);

struct TokenLogprob {
  int32_t id = 0;
  float logprob = 0;  // Natural logarithm; NaN where nothing came before (the first token).
  std::string bytes;  // Bytes that the token adds to the text; empty for specials.
};

// Output of one sequence: since its last piece, or all of it.
struct Piece {
  int index = 0;      // Sample or beam, from 0, within the request.
  bool echo = false;  // This piece is the prompt.
  // Whole characters; text that may still become a stop string is held back.
  std::string text;
  std::vector<int32_t> token_ids;  // Sampled since then, whether their text is held back or not.
  // One entry per token id, if log-probabilities were asked for.
  std::vector<TokenLogprob> logprobs;
  std::vector<std::vector<TokenLogprob>> top;  // Best first.
  std::string finish_reason;                   // "" = goes on, "stop", "length".
  float score = 0;                             // Beam search: of a finished sequence.
};

// Memory for generation state, bytes.
struct CacheUse {
  double used = 0;         // By this model's sequences and documents.
  double evictable = 0;    // Kept for its prompts that may come again.
  double capacity = 0;     // Limit, shared with other models.
  double used_by_all = 0;  // Used of it by all those models' sequences.
};

}  // namespace longview::models
