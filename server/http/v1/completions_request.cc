#include "server/http/v1/completions_request.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/api/copies.h"
#include "server/http/json/body_error.h"
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

// Takes the texts out of `prompt`: a request like `like` for each.
absl::StatusOr<std::vector<models::Request>> ReadPrompts(json& prompt, size_t max_prompts,
                                                         const Like<models::Request>& like) {
  constexpr char kField[] = "prompt";
  if (!prompt.is_string() && !IsArray(prompt)) {
    return FieldError(kField, absl::StrCat("expected a string, strings, token ids or lists of "
                                           "token ids, got ",
                                           Describe(prompt)));
  }
  const bool text = prompt.is_string();
  if (!text && ArraySize(prompt) == 0) return FieldError(kField, "has no elements");
  const bool ids = !text && (prompt.is_binary() || prompt.front().is_number());
  const size_t count = text || ids ? 1 : prompt.size();
  if (count > max_prompts) {
    return FieldError(kField, absl::StrCat("has ", count, " elements, the limit is ", max_prompts));
  }
  absl::StatusOr<std::vector<models::Request>> out = like.Copies(count, {.elements = "prompts"});
  if (!out.ok()) return out;
  if (text) {
    out->front().text = std::move(prompt.get_ref<std::string&>());
    return out;
  }
  if (ids) {
    absl::StatusOr<models::TokenInput> tokens = ReadIds(prompt, kField);
    if (!tokens.ok()) return tokens.status();
    out->front().tokens = *std::move(tokens);
    return out;
  }
  const bool strings = prompt.front().is_string();
  for (size_t i = 0; i < count; ++i) {
    if (auto s = ReadPrompt(prompt[i], strings, i, (*out)[i]); !s.ok()) return s;
  }
  return out;
}

}  // namespace

absl::StatusOr<CompletionsRequest> ParseCompletions(std::string_view text, size_t max_prompts,
                                                    size_t max_bytes) {
  absl::StatusOr<json> body = ParseObject(text, max_bytes);
  if (!body.ok()) return body.status();
  absl::StatusOr<CompletionSettings> members = ReadCompletionSettings(*body);
  if (!members.ok()) return members.status();
  CompletionsRequest out;
  out.model = std::move(members->model);
  out.stream = members->stream;
  out.include_usage = members->include_usage;
  Like<models::Request> like;
  like->truncate = members->truncate;
  like->generation = std::move(members->options);
  absl::StatusOr<std::vector<models::Request>> prompts =
      ReadPrompts(members->prompt, max_prompts, like);
  if (!prompts.ok()) return prompts.status();
  out.prompts = *std::move(prompts);
  return out;
}

}  // namespace longview::server
