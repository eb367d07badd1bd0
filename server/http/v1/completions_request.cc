#include "server/http/v1/completions_request.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/errors.h"
#include "server/http/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/nearest_name.h"

namespace longview::server {
namespace {

using models::GenerationOptions;
using nlohmann::json;

constexpr size_t kMaxStops = 16;

// Reads the members of a body besides the prompts.
struct Members {
  CompletionsRequest* out;
  GenerationOptions options;
  std::optional<bool> truncate;
  bool has_stream_options = false;
  std::optional<int> best_of;
};

using Reader = std::function<absl::Status(const json& value, const std::string& name, Members&)>;

template <typename T>
Reader Number(std::optional<T> GenerationOptions::*option) {
  return [option](const json& value, const std::string& name, Members& members) {
    const absl::StatusOr<T> number = ReadNumber<T>(value, name);
    if (number.ok()) members.options.*option = *number;
    return number.status();
  };
}

Reader Flag(std::function<void(Members&, bool)> set) {
  return [set = std::move(set)](const json& value, const std::string& name, Members& members) {
    const absl::StatusOr<bool> flag = ReadBool(value, name);
    if (flag.ok()) set(members, *flag);
    return flag.status();
  };
}

absl::Status ReadModel(const json& value, const std::string& name, Members& members) {
  absl::StatusOr<std::string> model = ReadString(value, name);
  if (model.ok()) members.out->model = *std::move(model);
  return model.status();
}

// Options are copied into every prompt's request.
absl::Status AddStop(const json& value, const std::string& name, Members& members) {
  constexpr size_t kLongest = 1024;  // As models take.
  const auto& stop = value.get_ref<const std::string&>();
  if (stop.size() > kLongest) {
    return FieldError(name,
                      absl::StrCat("a string of ", stop.size(), " bytes, at most ", kLongest));
  }
  members.options.stop.push_back(stop);
  return absl::OkStatus();
}

absl::Status ReadStop(const json& value, const std::string& name, Members& members) {
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

absl::Status ReadStreamOptions(const json& value, const std::string& name, Members& members) {
  if (!value.is_object()) {
    return FieldError(name, absl::StrCat("expected an object, got ", Describe(value)));
  }
  members.has_stream_options = true;
  for (const auto& [member, setting] : value.items()) {
    const std::string field = absl::StrCat(name, ".", member);
    if (member != "include_usage") return FieldError(field, "unknown member");
    if (setting.is_null()) continue;
    const absl::StatusOr<bool> flag = ReadBool(setting, field);
    if (!flag.ok()) return flag.status();
    members.out->include_usage = *flag;
  }
  return absl::OkStatus();
}

absl::Status ReadBestOf(const json& value, const std::string& name, Members& members) {
  const absl::StatusOr<int32_t> number = ReadNumber<int32_t>(value, name);
  if (number.ok()) members.best_of = *number;
  return number.status();
}

// As in vLLM: -1 is off, too.
absl::Status ReadTopK(const json& value, const std::string& name, Members& members) {
  const absl::StatusOr<int32_t> number = ReadNumber<int32_t>(value, name);
  if (number.ok()) members.options.top_k = *number == -1 ? 0 : *number;
  return number.status();
}

// Options that models know by these names; they check the values.
absl::Status ReadModelNumber(const json& value, const std::string& name, Members& members) {
  const absl::StatusOr<double> number = ReadNumber<double>(value, name);
  if (number.ok()) members.options.others[name] = value.dump();
  return number.status();
}

absl::Status ReadLogitBias(const json& value, const std::string& name, Members& members) {
  if (!value.is_object()) {
    return FieldError(name, absl::StrCat("expected an object, got ", Describe(value)));
  }
  if (!value.empty()) members.options.others[name] = value.dump();
  return absl::OkStatus();
}

absl::Status ReadNull(const json& value, const std::string& name, Members&) {
  return FieldError(name, absl::StrCat(Describe(value), " is not served; only null is"));
}

const std::map<std::string, Reader>& Readers() {
  static const auto* readers = new std::map<std::string, Reader>{
      {"model", ReadModel},
      {"max_tokens", Number(&GenerationOptions::max_new_tokens)},
      {"min_tokens", Number(&GenerationOptions::min_new_tokens)},
      {"temperature", Number(&GenerationOptions::temperature)},
      {"top_p", Number(&GenerationOptions::top_p)},
      {"top_k", ReadTopK},
      {"min_p", ReadModelNumber},
      {"repetition_penalty", Number(&GenerationOptions::repetition_penalty)},
      {"seed", Number(&GenerationOptions::seed)},
      {"n", Number(&GenerationOptions::num_return_sequences)},
      {"num_beams", Number(&GenerationOptions::num_beams)},
      {"length_penalty", Number(&GenerationOptions::length_penalty)},
      {"no_repeat_ngram_size", Number(&GenerationOptions::no_repeat_ngram_size)},
      {"logprobs", Number(&GenerationOptions::logprobs)},
      {"early_stopping", Flag([](Members& m, bool f) { m.options.early_stopping = f; })},
      {"ignore_eos", Flag([](Members& m, bool f) { m.options.ignore_eos = f; })},
      {"echo", Flag([](Members& m, bool f) { m.options.echo = f; })},
      {"truncate", Flag([](Members& m, bool f) { m.truncate = f; })},
      {"stream", Flag([](Members& m, bool f) { m.out->stream = f; })},
      {"stream_options", ReadStreamOptions},
      {"stop", ReadStop},
      {"best_of", ReadBestOf},
      {"presence_penalty", ReadModelNumber},
      {"frequency_penalty", ReadModelNumber},
      {"logit_bias", ReadLogitBias},
      {"suffix", ReadNull},
      {"user", [](const json&, const std::string&, Members&) { return absl::OkStatus(); }},
  };
  return *readers;
}

absl::Status CheckTogether(const Members& members) {
  const int n = members.options.num_return_sequences.value_or(1);
  if (members.best_of && *members.best_of != n) {
    return FieldError("best_of",
                      absl::StrCat(*members.best_of, " is not served; only n, ", n, " here, is"));
  }
  if (members.has_stream_options && !members.out->stream) {
    return FieldError("stream_options", "goes with stream: true only");
  }
  return absl::OkStatus();
}

absl::StatusOr<models::TokenInput> ReadIds(const json& ids, const std::string& field) {
  models::TokenInput tokens;
  if (auto status = AppendNumbers(ids, field, &tokens.ids); !status.ok()) return status;
  if (tokens.ids.empty()) return FieldError(field, "has no tokens");
  return tokens;
}

// One prompt of a list. Errors name `prompt`, as OpenAI's do; their message says which.
absl::Status ReadPrompt(json& value, bool strings, size_t index, models::Request& out) {
  constexpr char kField[] = "prompt";
  if (strings != value.is_string() || (!strings && !IsArray(value))) {
    return FieldError(kField,
                      absl::StrCat("element ", index, " is ", Describe(value), ", expected ",
                                   strings ? "a string" : "token ids", " as element 0"));
  }
  if (strings) {
    out.text = std::move(value.get_ref<std::string&>());
    return absl::OkStatus();
  }
  absl::StatusOr<models::TokenInput> tokens = ReadIds(value, kField);
  if (!tokens.ok()) {
    return FieldError(kField, absl::StrCat("element ", index, ": ",
                                           tokens.status().message().substr(sizeof(kField) + 1)));
  }
  out.tokens = *std::move(tokens);
  return absl::OkStatus();
}

// Takes the texts out of `prompt`.
absl::Status ReadPrompts(json& prompt, size_t max_prompts, const models::Request& like,
                         std::vector<models::Request>& out) {
  constexpr char kField[] = "prompt";
  if (prompt.is_string()) {
    out.push_back(like);
    out.back().text = std::move(prompt.get_ref<std::string&>());
    return absl::OkStatus();
  }
  if (!IsArray(prompt)) {
    return FieldError(kField, absl::StrCat("expected a string, strings, token ids or lists of "
                                           "token ids, got ",
                                           Describe(prompt)));
  }
  if (ArraySize(prompt) == 0) return FieldError(kField, "has no elements");
  if (prompt.is_binary() || prompt.front().is_number()) {
    absl::StatusOr<models::TokenInput> tokens = ReadIds(prompt, kField);
    if (!tokens.ok()) return tokens.status();
    out.push_back(like);
    out.back().tokens = *std::move(tokens);
    return absl::OkStatus();
  }
  if (prompt.size() > max_prompts) {
    return FieldError(kField,
                      absl::StrCat("has ", prompt.size(), " elements, the limit is ", max_prompts));
  }
  const bool strings = prompt.front().is_string();
  for (size_t i = 0; i < prompt.size(); ++i) {
    out.push_back(like);
    if (auto status = ReadPrompt(prompt[i], strings, i, out.back()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status UnknownMember(const std::string& name) {
  std::vector<std::string_view> known = {"prompt"};
  for (const auto& [other, reader] : Readers()) known.push_back(other);
  return FieldError(name, absl::StrCat("unknown member", DidYouMean("", name, known)));
}

}  // namespace

absl::StatusOr<CompletionsRequest> ParseCompletions(std::string_view text, size_t max_prompts,
                                                    size_t max_bytes) {
  absl::StatusOr<json> body = ParseJson(text, max_bytes);
  if (!body.ok()) return body.status();
  if (absl::Status status = ExpectObject(*body); !status.ok()) return status;
  CompletionsRequest out;
  Members members{.out = &out, .options = {}, .truncate = {}, .best_of = {}};
  members.options.defaults = models::GenerationDefaults::kOpenAi;
  for (const auto& [name, value] : body->items()) {
    if (name == "prompt") continue;
    const auto reader = Readers().find(name);
    if (reader == Readers().end()) return UnknownMember(name);
    if (value.is_null()) continue;
    if (auto status = reader->second(value, name, members); !status.ok()) return status;
  }
  if (absl::Status status = CheckTogether(members); !status.ok()) return status;
  const auto prompt = body->find("prompt");
  if (prompt == body->end() || prompt->is_null()) return FieldError("prompt", "is missing");
  models::Request like;
  like.truncate = members.truncate;
  like.generation = std::move(members.options);
  if (auto status = ReadPrompts(*prompt, max_prompts, like, out.prompts); !status.ok()) {
    return status;
  }
  return out;
}

}  // namespace longview::server
