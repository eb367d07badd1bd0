#include "server/http/v1/completions_members.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {
namespace {

using models::GenerationOptions;
using nlohmann::json;

constexpr size_t kMaxStops = 16;

using Reader = MemberRow<CompletionSettings>::Reader;

template <typename T>
Reader Number(std::optional<T> GenerationOptions::*option) {
  return [option](json& value, const std::string& name, CompletionSettings& members) {
    const absl::StatusOr<T> number = ReadNumber<T>(value, name);
    if (number.ok()) members.options.*option = *number;
    return number.status();
  };
}

// Options are copied into every prompt's request.
absl::Status AddStop(json& value, const std::string& name, CompletionSettings& members) {
  constexpr size_t kLongest = 1024;  // Models take no longer ones.
  const auto& stop = value.get_ref<const std::string&>();
  if (stop.size() > kLongest) {
    return FieldError(name,
                      absl::StrCat("a string of ", stop.size(), " bytes, at most ", kLongest));
  }
  members.options.stop.push_back(stop);
  return absl::OkStatus();
}

absl::Status ReadStop(json& value, const std::string& name, CompletionSettings& members) {
  if (value.is_string()) return AddStop(value, name, members);
  if (!value.is_array()) {
    return FieldError(name, absl::StrCat("expected a string or strings, got ", Describe(value)));
  }
  if (value.size() > kMaxStops) {
    return FieldError(name,
                      absl::StrCat("has ", value.size(), " elements, the limit is ", kMaxStops));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_string()) return FieldError(name, Describe(value[i]) + " is not a string");
    if (auto status = AddStop(value[i], name, members); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// The members of `stream_options`.
const MemberTable<CompletionSettings>& StreamOptions() {
  static const auto* const table = new MemberTable<CompletionSettings>{
      {"include_usage", MemberOf::kOpenAi,
       Reads(+[](CompletionSettings& m, bool f) { m.include_usage = f; })},
      {"include_obfuscation", MemberOf::kOpenAi, NoEffect{}},
  };
  return *table;
}

absl::Status ReadStreamOptions(json& value, const std::string& name, CompletionSettings& members) {
  if (!value.is_object()) {
    return FieldError(name, absl::StrCat("expected an object, got ", Describe(value)));
  }
  members.has_stream_options = true;
  return StreamOptions().ReadWithin(name, value, members);
}

// Takes vLLM's -1 for off, which is 0 here.
absl::Status ReadTopK(json& value, const std::string& name, CompletionSettings& members) {
  const absl::StatusOr<int32_t> number = ReadNumber<int32_t>(value, name);
  if (number.ok()) members.options.top_k = *number == -1 ? 0 : *number;
  return number.status();
}

// Options that models know by these names; they check the values.
absl::Status ReadModelNumber(json& value, const std::string& name, CompletionSettings& members) {
  const absl::StatusOr<double> number = ReadNumber<double>(value, name);
  if (number.ok()) members.options.others[name] = value.dump();
  return number.status();
}

absl::Status ReadLogitBias(json& value, const std::string& name, CompletionSettings& members) {
  if (!value.is_object()) {
    return FieldError(name, absl::StrCat("expected an object, got ", Describe(value)));
  }
  if (!value.empty()) members.options.others[name] = value.dump();
  return absl::OkStatus();
}

// Models draw by 32 bits. Seeds of so many are their own; others are mixed down to them, so that
// near ones differ.
absl::Status ReadSeed(json& value, const std::string& name, CompletionSettings& members) {
  uint64_t seed = 0;
  if (value.is_number_unsigned()) {
    seed = value.get<uint64_t>();
  } else {
    ASSIGN_OR_RETURN(const int64_t number, ReadNumber<int64_t>(value, name));
    seed = static_cast<uint64_t>(number);
  }
  if (seed >> 32 != 0) {  // The finalizer of SplitMix64.
    seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9u;
    seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBu;
    seed ^= seed >> 31;
  }
  members.options.seed = static_cast<uint32_t>(seed);
  return absl::OkStatus();
}

const MemberTable<CompletionSettings>& CompletionTable() {
  using enum MemberOf;
  static const auto* const table = new MemberTable<CompletionSettings>{
      {"model", kOpenAi,
       Reads(+[](CompletionSettings& m, std::string v) { m.model = std::move(v); })},
      {"prompt", kOpenAi, Keeps(&CompletionSettings::prompt)},
      {"max_tokens", kOpenAi, Number(&GenerationOptions::max_new_tokens)},
      {"temperature", kOpenAi, Number(&GenerationOptions::temperature)},
      {"top_p", kOpenAi, Number(&GenerationOptions::top_p)},
      {"n", kOpenAi, Number(&GenerationOptions::num_return_sequences)},
      {"best_of", kOpenAi, Reads(+[](CompletionSettings& m, int32_t n) { m.best_of = n; })},
      {"stop", kOpenAi, ReadStop},
      {"seed", kOpenAi, ReadSeed},
      {"logprobs", kOpenAi, Number(&GenerationOptions::logprobs)},
      {"echo", kOpenAi, Reads(+[](CompletionSettings& m, bool f) { m.echo = f; })},
      {"stream", kOpenAi, Reads(+[](CompletionSettings& m, bool f) { m.stream = f; })},
      {"stream_options", kOpenAi, ReadStreamOptions},
      {"presence_penalty", kOpenAi, ReadModelNumber},
      {"frequency_penalty", kOpenAi, ReadModelNumber},
      {"logit_bias", kOpenAi, ReadLogitBias},
      {"suffix", kOpenAi, Refused{"is not served; only null is"}},
      {"user", kOpenAi, NoEffect{}},
      {"service_tier", kOpenAi, NoEffect{}},
      {"metadata", kOpenAi, NoEffect{}},
      {"store", kOpenAi, NoEffect{}},
      {"min_tokens", kVllm, Number(&GenerationOptions::min_new_tokens)},
      {"top_k", kVllm, ReadTopK},
      {"min_p", kVllm, ReadModelNumber},
      {"repetition_penalty", kVllm, Number(&GenerationOptions::repetition_penalty)},
      {"ignore_eos", kVllm,
       Reads(+[](CompletionSettings& m, bool f) { m.options.ignore_eos = f; })},
      {"do_sample", kHuggingFace,
       Reads(+[](CompletionSettings& m, bool f) { m.options.do_sample = f; })},
      {"return_full_text", kHuggingFace,
       Reads(+[](CompletionSettings& m, bool f) { m.return_full_text = f; })},
      {"num_beams", kHuggingFace, Number(&GenerationOptions::num_beams)},
      {"length_penalty", kHuggingFace, Number(&GenerationOptions::length_penalty)},
      {"no_repeat_ngram_size", kHuggingFace, Number(&GenerationOptions::no_repeat_ngram_size)},
      {"early_stopping", kHuggingFace,
       Reads(+[](CompletionSettings& m, bool f) { m.options.early_stopping = f; })},
      {"truncate", kLongview, Reads(+[](CompletionSettings& m, bool f) { m.truncate = f; })},
  };
  return *table;
}

// Holds members against each other that say something together.
absl::Status Settle(CompletionSettings& members) {
  const int n = members.options.num_return_sequences.value_or(1);
  if (members.best_of && *members.best_of != n) {
    return FieldError("best_of",
                      absl::StrCat(*members.best_of, " is not served; only n, ", n, " here, is"));
  }
  if (members.has_stream_options && !members.stream) {
    return FieldError("stream_options", "goes with stream: true only");
  }
  if (members.echo && members.return_full_text && *members.echo != *members.return_full_text) {
    return FieldError("return_full_text", "is not what echo says; send one");
  }
  members.options.echo = members.echo.value_or(members.return_full_text.value_or(false));
  if (members.options.do_sample == false) members.options.temperature = 0;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompletionSettings> ReadCompletionSettings(json& object) {
  CompletionSettings body;
  body.options.defaults = models::GenerationDefaults::kOpenAi;
  RETURN_IF_ERROR(CompletionTable().Read(object, body));
  RETURN_IF_ERROR(Settle(body));
  if (body.prompt.is_null()) return FieldError("prompt", "is missing");
  return body;
}

std::vector<MemberInfo> CompletionMembers() { return CompletionTable().infos(); }

}  // namespace longview::server
