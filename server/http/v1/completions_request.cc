#include "server/http/v1/completions_request.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/http/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/v1/completions_members.h"

namespace longview::server {
namespace {

using nlohmann::json;

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

}  // namespace

absl::StatusOr<CompletionsRequest> ParseCompletions(std::string_view text, size_t max_prompts,
                                                    size_t max_bytes) {
  absl::StatusOr<json> body = ParseJson(text, max_bytes);
  if (!body.ok()) return body.status();
  if (absl::Status status = ExpectObject(*body); !status.ok()) return status;
  absl::StatusOr<CompletionSettings> members = ReadCompletionSettings(*body);
  if (!members.ok()) return members.status();
  CompletionsRequest out;
  out.model = std::move(members->model);
  out.stream = members->stream;
  out.include_usage = members->include_usage;
  models::Request like;
  like.truncate = members->truncate;
  like.generation = std::move(members->options);
  auto status = ReadPrompts(members->prompt, max_prompts, like, out.prompts);
  if (!status.ok()) return status;
  return out;
}

}  // namespace longview::server
