// SetOption of generation.h: every option a client may name, and what its value must look like.
#include <array>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/generation.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

using nlohmann::json;
using Setter = absl::Status (*)(GenerationOptions&, const std::string& name, const json& value);

absl::Status Wrong(const std::string& name, std::string_view expected, const json& value) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected ", std::string(expected), ", found ", ShortJson(value)));
}

absl::Status Twice(const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": given twice, under this or another of its names"));
}

// JSON inside of a string, where that is what it holds.
json Unwrapped(const json& value) {
  if (!value.is_string()) return value;
  absl::StatusOr<json> inner = ParseJson(value.get_ref<const std::string&>(), "");
  return inner.ok() ? *std::move(inner) : value;
}

template <typename Integer>
std::optional<Integer> IntegerOf(const json& value) {
  constexpr auto kMin = std::numeric_limits<Integer>::min();
  constexpr auto kMax = std::numeric_limits<Integer>::max();
  if (!value.is_number()) return std::nullopt;
  // Every 32-bit integer is a double; clients write 50.0 where their parameters are doubles.
  const double number = value.get<double>();
  if (!(number >= kMin && number <= kMax)) return std::nullopt;
  const auto integer = static_cast<Integer>(number);
  return integer == number ? std::optional<Integer>(integer) : std::nullopt;
}

template <auto kField>
absl::Status SetInteger(GenerationOptions& options, const std::string& name, const json& value) {
  auto& field = options.*kField;
  using Integer = typename std::remove_reference_t<decltype(field)>::value_type;
  const json plain = Unwrapped(value);
  const std::optional<Integer> integer = IntegerOf<Integer>(plain);
  if (!integer) {
    return Wrong(name,
                 absl::StrCat("an integer in [", std::numeric_limits<Integer>::min(), ", ",
                              std::numeric_limits<Integer>::max(), "]"),
                 value);
  }
  if (field) return Twice(name);
  field = *integer;
  return absl::OkStatus();
}

template <auto kField>
absl::Status SetNumber(GenerationOptions& options, const std::string& name, const json& value) {
  const json plain = Unwrapped(value);
  if (!plain.is_number()) return Wrong(name, "a number", value);
  if (options.*kField) return Twice(name);
  options.*kField = plain.get<double>();
  return absl::OkStatus();
}

template <auto kField>
absl::Status SetBool(GenerationOptions& options, const std::string& name, const json& value) {
  const json plain = Unwrapped(value);
  if (!plain.is_boolean()) return Wrong(name, "true or false", value);
  options.*kField = plain.get<bool>();
  return absl::OkStatus();
}

// A plain string is one stop string, unless it holds a JSON list of strings.
absl::Status SetStop(GenerationOptions& options, const std::string& name, const json& value) {
  if (!options.stop.empty()) return Twice(name);
  const auto strings = [](const json& list) {
    if (!list.is_array()) return false;
    for (const json& item : list) {
      if (!item.is_string()) return false;
    }
    return true;
  };
  const json plain = Unwrapped(value);
  if (strings(plain)) {
    options.stop = plain.get<std::vector<std::string>>();
  } else if (value.is_string()) {
    options.stop = {value.get<std::string>()};
  } else {
    return Wrong(name, "a string or a list of strings", value);
  }
  return absl::OkStatus();
}

absl::Status SetOther(GenerationOptions& options, const std::string& name, const json& value) {
  if (!options.others.emplace(name, Unwrapped(value).dump()).second) return Twice(name);
  return absl::OkStatus();
}

// Three values: false, true and "never".
absl::Status SetEarlyStopping(GenerationOptions& options, const std::string& name,
                              const json& value) {
  if (options.early_stopping || options.others.count(name) > 0) return Twice(name);
  if (value == "never") return SetOther(options, name, value);
  const json plain = Unwrapped(value);
  if (!plain.is_boolean()) return Wrong(name, "true, false or \"never\"", value);
  options.early_stopping = plain.get<bool>();
  return absl::OkStatus();
}

using Options = GenerationOptions;
constexpr std::pair<std::string_view, Setter> kOptions[] = {
    {"max_new_tokens", SetInteger<&Options::max_new_tokens>},
    {"max_tokens", SetInteger<&Options::max_new_tokens>},
    {"min_new_tokens", SetInteger<&Options::min_new_tokens>},
    {"min_tokens", SetInteger<&Options::min_new_tokens>},
    {"do_sample", SetBool<&Options::do_sample>},
    {"temperature", SetNumber<&Options::temperature>},
    {"top_p", SetNumber<&Options::top_p>},
    {"top_k", SetInteger<&Options::top_k>},
    {"repetition_penalty", SetNumber<&Options::repetition_penalty>},
    {"seed", SetInteger<&Options::seed>},
    {"stop", SetStop},
    {"stop_strings", SetStop},
    {"ignore_eos", SetBool<&Options::ignore_eos>},
    {"num_return_sequences", SetInteger<&Options::num_return_sequences>},
    {"n", SetInteger<&Options::num_return_sequences>},
    {"num_beams", SetInteger<&Options::num_beams>},
    {"length_penalty", SetNumber<&Options::length_penalty>},
    {"no_repeat_ngram_size", SetInteger<&Options::no_repeat_ngram_size>},
    {"early_stopping", SetEarlyStopping},
    {"logprobs", SetInteger<&Options::logprobs>},
    {"echo", SetBool<&Options::echo>},
    // Read by settings.cc.
    {"max_length", SetOther},
    {"max_len_a", SetOther},
    {"max_len_b", SetOther},
    {"min_length", SetOther},
    {"eos_token_id", SetOther},
    {"stop_token_ids", SetOther},
    {"bad_words_ids", SetOther},
    {"suppress_tokens", SetOther},
    {"begin_suppress_tokens", SetOther},
    {"forced_bos_token_id", SetOther},
    {"forced_eos_token_id", SetOther},
    {"exponential_decay_length_penalty", SetOther},
    {"encoder_no_repeat_ngram_size", SetOther},
    {"encoder_repetition_penalty", SetOther},
    {"sequence_bias", SetOther},
    {"logit_bias", SetOther},
    {"frequency_penalty", SetOther},
    {"presence_penalty", SetOther},
    {"remove_invalid_values", SetOther},
    {"renormalize_logits", SetOther},
    {"min_p", SetOther},
    {"typical_p", SetOther},
    {"epsilon_cutoff", SetOther},
    {"eta_cutoff", SetOther},
};

Setter Find(std::string_view name) {
  for (const auto& [known, setter] : kOptions) {
    if (known == name) return setter;
  }
  return nullptr;
}

}  // namespace

bool IsGenerationOption(std::string_view name) { return Find(name) != nullptr; }

absl::Status SetOption(GenerationOptions& options, std::string_view name, std::string_view text) {
  const std::string shown(name.substr(0, 64));
  const Setter setter = Find(name);
  if (setter == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(shown, ": no such generation option"));
  }
  ASSIGN_OR_RETURN(const json value, ParseJson(text, shown));
  if (value.is_null()) return absl::OkStatus();
  return setter(options, shown, value);
}

}  // namespace longview::models
