// POST /v1/completions, OpenAI's shape: whole, or as server-sent events.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "models/model.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/api/calls/context.h"
#include "server/api/calls/copies.h"
#include "server/api/calls/generation_call.h"
#include "server/api/typed/generate_requests.h"
#include "server/http/context.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/v1/completions_format.h"
#include "server/http/v1/completions_members.h"
#include "server/http/v1/completions_stream.h"

namespace longview::server {
namespace {

struct CompletionsRequest {
  std::string model;
  // One per prompt: its text or ids, and the same options in each. Without a task.
  std::vector<models::Request> prompts;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
};

// INVALID_ARGUMENT names the member. Which values of an option are possible is the model's to
// say. JSON values take at most `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<CompletionsRequest> ParseCompletions(std::string_view body, size_t max_prompts,
                                                    size_t max_bytes = size_t{64} << 20);

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
    ASSIGN_OR_RETURN(models::TokenInput tokens, ReadIds(prompt, kField));
    out->front().tokens = std::move(tokens);
    return out;
  }
  const bool strings = prompt.front().is_string();
  for (size_t i = 0; i < count; ++i) {
    if (auto s = ReadPrompt(prompt[i], strings, i, (*out)[i]); !s.ok()) return s;
  }
  return out;
}

absl::StatusOr<CompletionsRequest> ParseCompletions(std::string_view text, size_t max_prompts,
                                                    size_t max_bytes) {
  ASSIGN_OR_RETURN(json body, ParseObject(text, max_bytes));
  ASSIGN_OR_RETURN(CompletionSettings members, ReadCompletionSettings(body));
  CompletionsRequest out;
  out.model = std::move(members.model);
  out.stream = members.stream;
  out.include_usage = members.include_usage;
  Like<models::Request> like;
  like->truncate = members.truncate;
  like->generation = std::move(members.options);
  ASSIGN_OR_RETURN(std::vector<models::Request> prompts,
                   ReadPrompts(members.prompt, max_prompts, like));
  out.prompts = std::move(prompts);
  return out;
}

// Renames HuggingFace's option names in a model's error to OpenAI's.
absl::Status InOpenAiNames(const absl::Status& status, size_t item, size_t items) {
  const absl::Status named = WithParam(Renamed(status, {{"max_new_tokens", "max_tokens"},
                                                        {"min_new_tokens", "min_tokens"},
                                                        {"num_return_sequences", "n"},
                                                        {"text", "prompt"},
                                                        {"token_ids", "prompt"}}));
  return items > 1 ? OfElement(named, "prompt", item) : named;
}

CompletionNames NamesOf(const CallInfo& info, const std::string& model,
                        const models::GenerationOptions& options) {
  return {.id = absl::StrCat("cmpl-", info.request_id),
          .request_id = info.request_id,
          .created = absl::ToUnixSeconds(absl::Now()),
          .model = model,
          .logprobs = options.logprobs.has_value(),
          .alternatives = options.logprobs.value_or(0) > 0};
}

// Answers when every choice is whole.
void Collect(HttpContext& context, const ExchangePtr& exchange, GenerationJob job,
             CompletionNames names) {
  auto done = [&context, exchange, names = std::move(names)](GenerationEnd end) {
    if (!end.status.ok()) return exchange->Fail(end.status);
    const size_t limit = context.api.options().max_message_bytes;
    const size_t bytes = std::min(CompletionBytes(names, end.completed), limit);
    WriteSized(context, exchange, bytes, [exchange, names, limit, end = std::move(end)] {
      absl::StatusOr<std::string> body = CompletionBody(names, end.completed, limit);
      if (!body.ok()) return exchange->Fail(body.status());
      HttpResponse response = JsonResponse(*std::move(body));
      const CallTotals totals = TotalsOf(end.completed);
      AddServerTiming(totals.queue_seconds, totals.compute_seconds, &response);
      exchange->Respond(std::move(response));
    });
  };
  const Api::Pending pending =
      CollectGeneration(context.api.context(), exchange->info(), std::move(job), std::move(done));
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

void Stream(HttpContext& context, const ExchangePtr& exchange, GenerationJob job,
            CompletionNames names, bool include_usage) {
  const auto stream = CompletionsStream::Make(exchange, std::move(names), include_usage);
  exchange->OnCancel([stream] { stream->Cancel(); });
  stream->SetPending(
      StartGeneration(context.api.context(), exchange->info(), std::move(job), stream->flow()));
}

void Complete(HttpContext& context, const ExchangePtr& exchange) {
  const auto max_prompts = static_cast<size_t>(context.api.options().max_items);
  absl::StatusOr<CompletionsRequest> request =
      ParseCompletions(std::exchange(exchange->mutable_request().body, {}), max_prompts,
                       context.api.options().max_message_bytes);
  if (!request.ok()) return Refuse(context, exchange, request.status());
  const absl::StatusOr<ModelHandle> model =
      FindGenerator(context.api.context(), request->model, "");
  if (!model.ok()) {
    return exchange->Fail(context.api.Record(exchange->info(), request->model, "", model.status()));
  }
  GenerationJob job{*model, std::move(request->prompts), &InOpenAiNames};
  const models::Task task = GenerationTask((*model)->model->info());
  for (models::Request& prompt : job.items) prompt.task = task;
  CompletionNames names = NamesOf(exchange->info(), (*model)->name, *job.items.front().generation);
  if (request->stream) {
    Stream(context, exchange, std::move(job), std::move(names), request->include_usage);
  } else {
    Collect(context, exchange, std::move(job), std::move(names));
  }
}

}  // namespace

void AddCompletions(HttpContext& context, Router& router) {
  router.Add(Verb::kPost, "/v1/completions",
             [&context](const ExchangePtr& exchange, const PathParameters&) {
               Complete(context, exchange);
             });
}

}  // namespace longview::server
