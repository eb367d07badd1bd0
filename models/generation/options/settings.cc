#include "models/generation/options/settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "models/generation/options/option_reader.h"

namespace longview::models {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Below it a draw is the greedy choice, and scores divided by it overflow.
constexpr double kColdest = 1e-6;
constexpr double kLargest = std::numeric_limits<float>::max();
constexpr int kFairseqMaxLenB = 200;  // fairseq's own default; that of max_len_a is 0.

class Resolver {
 public:
  Resolver(const GenerationOptions& options, const SettingsContext& context, bool asked_length)
      : options_(options),
        context_(context),
        asked_length_(asked_length),
        others_(options.others, context.vocab) {}

  absl::StatusOr<GenerationSettings> Resolve() {
    ReadLengths();
    ReadSearch();
    ReadSampling();
    ReadProcessors();
    ReadStops();
    ReadOutput();
    others_.RefuseUnread();
    if (!others_.status().ok()) return others_.status();
    return settings_;
  }

 private:
  void Refuse(std::string_view name, std::string_view problem) { others_.Refuse(name, problem); }

  // A value of `name` that must be in [min, max]; NaN is in no range.
  template <typename Number>
  Number Check(std::string_view name, const std::optional<Number>& value, Number fallback,
               Number min, Number max) {
    if (!value) return fallback;
    if (*value >= min && *value <= max) return *value;
    Refuse(name, OutsideText(*value, min, max));
    return fallback;
  }
  // Check for the half-open range (0, max].
  double CheckPositive(std::string_view name, const std::optional<double>& value, double fallback,
                       double max) {
    if (!value || (*value > 0 && *value <= max)) return value.value_or(fallback);
    Refuse(name, OutsideText(*value, std::numeric_limits<double>::min(), max));
    return fallback;
  }

  void ReadLengths();
  void ReadMinimum();
  std::optional<int> FairseqLength();
  void ReadSearch();
  void ReadSampling();
  void ReadProcessors();
  void ReadStops();
  void ReadOutput();
  void CheckWords();

  const GenerationOptions& options_;
  const SettingsContext& context_;
  const bool asked_length_;  // By the request itself: a model's own default gives way.
  OptionReader others_;
  GenerationSettings settings_;
};

void Resolver::ReadLengths() {
  constexpr int kMax = std::numeric_limits<int>::max();
  ReadMinimum();
  const std::optional<int> by_source = FairseqLength();
  const int max_length = others_.Int("max_length", 0, 1);
  int wanted = by_source.value_or(std::min(context_.default_new_tokens, context_.room));
  const char* name = "max_new_tokens";
  if (options_.max_new_tokens) {
    wanted = Check(name, options_.max_new_tokens, 0, 0, kMax);
  } else if (max_length > 0) {
    name = "max_length";
    // A model's own default means nothing to a prompt that is longer.
    if (asked_length_ || max_length > context_.prompt) wanted = max_length - context_.prompt;
    if (wanted <= 0) {
      Refuse(name, absl::StrCat(max_length, " leaves nothing to generate after a prompt of ",
                                context_.prompt, " tokens"));
      wanted = 0;
    }
  }
  if (wanted > context_.room) {
    if (asked_length_) {
      Refuse(name, absl::StrCat(wanted, " new tokens after a prompt of ", context_.prompt, " are ",
                                context_.prompt + int64_t{wanted}, " in all; the model's limit is ",
                                context_.prompt + context_.room));
    }
    wanted = std::max(context_.room, 0);
  }
  settings_.max_new_tokens = wanted;
  settings_.max_length = context_.prompt + wanted;
}

void Resolver::ReadMinimum() {
  constexpr int kMax = std::numeric_limits<int>::max();
  settings_.min_new_tokens = Check("min_new_tokens", options_.min_new_tokens, 0, 0, kMax);
  settings_.min_length = others_.Int("min_length", 0, 0);
  if (!context_.fairseq_source) {
    // HuggingFace's rule for two minima: the one of new tokens counts, even where it is lower.
    if (options_.min_new_tokens) settings_.min_length = 0;
    return;
  }
  settings_.min_new_tokens = std::max(settings_.min_new_tokens, settings_.min_length);
  settings_.min_length = 0;
}

// Tokens to generate by max_len_a and max_len_b, and the end that is forced behind them; none where
// the length is given otherwise.
std::optional<int> Resolver::FairseqLength() {
  const bool otherwise = options_.max_new_tokens || others_.Has("max_length");
  for (const char* name : {"max_len_a", "max_len_b"}) {
    if (!others_.Has(name)) continue;
    if (!context_.fairseq_source) Refuse(name, "only Luna's translation models take it");
    if (otherwise) Refuse(name, "the length is given by max_tokens or max_length too");
  }
  settings_.fairseq = context_.fairseq_source.has_value();
  if (!settings_.fairseq || otherwise) return std::nullopt;
  const double limit = others_.Number("max_len_a", 0, 0, kLargest) * *context_.fairseq_source +
                       others_.Int("max_len_b", kFairseqMaxLenB, 0);
  return static_cast<int>(std::min(limit, std::max(context_.room - 1, 0) * 1.0)) + 1;
}

void Resolver::ReadSearch() {
  settings_.beams = Check("num_beams", options_.num_beams, 1, 1, kMostBeams);
  settings_.sequences =
      Check("num_return_sequences", options_.num_return_sequences, 1, 1, kMostSequences);
  settings_.length_penalty =
      Check("length_penalty", options_.length_penalty, 1.0, -kLargest, kLargest);
  const bool early = options_.early_stopping.value_or(false);
  settings_.early_stopping =
      others_.Early("early_stopping", early ? EarlyStopping::kYes : EarlyStopping::kNo);
  if (settings_.beams > 1 && settings_.sequences > settings_.beams) {
    Refuse("num_return_sequences",
           absl::StrCat(settings_.sequences, " is more than num_beams ", settings_.beams));
  }
  // Scoring searches nothing; each sequence is empty.
  if (settings_.max_new_tokens == 0) settings_.beams = 1;
}

void Resolver::ReadSampling() {
  const bool open_ai = options_.defaults == GenerationDefaults::kOpenAi;
  settings_.temperature = Check("temperature", options_.temperature, 1.0, 0.0, kLargest);
  settings_.sample = options_.do_sample.value_or(open_ai && settings_.beams == 1);
  if (settings_.temperature < kColdest) settings_.sample = false;
  const int top_k = open_ai ? 0 : context_.default_top_k;
  settings_.top_k = Check("top_k", options_.top_k, top_k, 0, std::numeric_limits<int>::max());
  settings_.top_p = CheckPositive("top_p", options_.top_p, 1, 1);
  settings_.min_p = others_.Number("min_p", 0, 0, 1);
  settings_.typical_p = others_.Number("typical_p", 1, std::numeric_limits<double>::min(), 1);
  settings_.epsilon_cutoff = others_.Number("epsilon_cutoff", 0, 0, 1);
  settings_.eta_cutoff = others_.Number("eta_cutoff", 0, 0, 1);
  settings_.renormalize = others_.Bool("renormalize_logits", false);
  settings_.seed = options_.seed ? *options_.seed : std::random_device()();
  if (settings_.sequences > 1 && settings_.beams == 1 && !settings_.sample && !open_ai &&
      settings_.max_new_tokens > 0) {
    Refuse("num_return_sequences",
           absl::StrCat(settings_.sequences,
                        " sequences of greedy search are the same one; sample, or set num_beams"));
  }
}

void Resolver::ReadProcessors() {
  constexpr int kMax = std::numeric_limits<int>::max();
  settings_.repetition_penalty =
      CheckPositive("repetition_penalty", options_.repetition_penalty, 1, kLargest);
  settings_.encoder_repetition_penalty =
      others_.Number("encoder_repetition_penalty", 1, std::numeric_limits<float>::min(), kLargest);
  settings_.frequency_penalty = others_.Number("frequency_penalty", 0, -2, 2);
  settings_.presence_penalty = others_.Number("presence_penalty", 0, -2, 2);
  settings_.no_repeat_ngram =
      Check("no_repeat_ngram_size", options_.no_repeat_ngram_size, 0, 0, kMax);
  settings_.encoder_no_repeat_ngram = others_.Int("encoder_no_repeat_ngram_size", 0, 0);
  settings_.bad_words = others_.IdLists("bad_words_ids");
  settings_.suppress = others_.Ids("suppress_tokens");
  settings_.begin_suppress = others_.Ids("begin_suppress_tokens");
  settings_.forced_bos = others_.Id("forced_bos_token_id");
  settings_.forced_eos = others_.Ids("forced_eos_token_id");
  settings_.decay = others_.Decay("exponential_decay_length_penalty");
  settings_.sequence_bias = others_.Biases("sequence_bias");
  for (GenerationSettings::Bias& bias : others_.TokenBiases("logit_bias")) {
    settings_.sequence_bias.push_back(std::move(bias));
  }
  settings_.remove_invalid = others_.Bool("remove_invalid_values", false);
}

void Resolver::ReadStops() {
  settings_.eos = others_.Has("eos_token_id") ? others_.Ids("eos_token_id") : *context_.eos;
  if (options_.ignore_eos) settings_.eos.clear();
  settings_.stop_ids = others_.Ids("stop_token_ids");
  // The end is no bad word, as in HuggingFace.
  std::erase_if(settings_.bad_words, [this](const std::vector<int32_t>& word) {
    return word.size() == 1 && std::count(settings_.eos.begin(), settings_.eos.end(), word[0]) > 0;
  });
  if (options_.stop.size() > kMostStops) {
    Refuse("stop", absl::StrCat(options_.stop.size(), " strings, at most ", kMostStops));
  }
  for (const std::string& stop : options_.stop) {
    if (stop.empty()) Refuse("stop", "an empty string would stop before the first token");
    if (stop.size() > kMostStopBytes) {
      Refuse("stop", absl::StrCat("a string of ", stop.size(), " bytes, at most ", kMostStopBytes));
    }
  }
  if (!options_.stop.empty() && settings_.beams > 1) {
    Refuse("stop", "stop strings end single sequences; with num_beams use stop_token_ids");
  }
  settings_.stop = options_.stop;
}

void Resolver::ReadOutput() {
  if (options_.logprobs) {
    settings_.logprobs = Check("logprobs", options_.logprobs, 0, 0, kMostLogprobs);
  }
  settings_.echo = options_.echo;
}

template <typename Value>
void Fall(std::optional<Value>& over, const std::optional<Value>& under) {
  if (!over) over = under;
}

}  // namespace

GenerationOptions MergeOptions(GenerationOptions over, const GenerationOptions& under) {
  const auto by_source = [](const std::string& name) {
    return name == "max_len_a" || name == "max_len_b";
  };
  const bool absolute = over.max_new_tokens || over.others.count("max_length") > 0;
  const bool length =
      absolute || over.others.count("max_len_a") > 0 || over.others.count("max_len_b") > 0;
  const bool early = over.early_stopping || over.others.count("early_stopping") > 0;
  if (!length) over.max_new_tokens = under.max_new_tokens;
  if (!early) over.early_stopping = under.early_stopping;
  for (const auto& [name, value] : under.others) {
    if (absolute && by_source(name)) continue;
    if ((length && name == "max_length") || (early && name == "early_stopping")) continue;
    over.others.emplace(name, value);
  }
  Fall(over.min_new_tokens, under.min_new_tokens);
  Fall(over.do_sample, under.do_sample);
  Fall(over.temperature, under.temperature);
  Fall(over.top_p, under.top_p);
  Fall(over.top_k, under.top_k);
  Fall(over.repetition_penalty, under.repetition_penalty);
  Fall(over.seed, under.seed);
  if (over.stop.empty()) over.stop = under.stop;
  over.ignore_eos = over.ignore_eos || under.ignore_eos;
  Fall(over.num_return_sequences, under.num_return_sequences);
  Fall(over.num_beams, under.num_beams);
  Fall(over.length_penalty, under.length_penalty);
  Fall(over.no_repeat_ngram_size, under.no_repeat_ngram_size);
  Fall(over.logprobs, under.logprobs);
  over.echo = over.echo || under.echo;
  return over;
}

absl::StatusOr<GenerationSettings> ResolveSettings(const GenerationOptions& request,
                                                   const GenerationOptions& model,
                                                   const SettingsContext& context) {
  GenerationOptions over = request;
  if (!over.do_sample && over.temperature) over.do_sample = *over.temperature > 0;
  const bool asked_length = over.max_new_tokens || over.others.count("max_length") > 0;
  const GenerationOptions merged = MergeOptions(std::move(over), model);
  return Resolver(merged, context, asked_length).Resolve();
}

}  // namespace longview::models
