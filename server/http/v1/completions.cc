// POST /v1/completions, OpenAI's shape: whole, or as server-sent events.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/api/context.h"
#include "server/api/generate_requests.h"
#include "server/api/generation_call.h"
#include "server/http/context.h"
#include "server/http/v1/completions_format.h"
#include "server/http/v1/completions_request.h"
#include "server/http/v1/completions_stream.h"

namespace longview::server {
namespace {

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
  GenerationSink sink;
  sink.on_end = [&context, exchange, names = std::move(names)](GenerationEnd end) {
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
      context.api.RunGeneration(exchange->info(), std::move(job), std::move(sink));
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

void Stream(HttpContext& context, const ExchangePtr& exchange, GenerationJob job,
            CompletionNames names, bool include_usage) {
  const auto stream = CompletionsStream::Make(exchange, std::move(names), include_usage);
  exchange->OnCancel([stream] { stream->Cancel(); });
  stream->SetPending(
      context.api.RunGeneration(exchange->info(), std::move(job), Into(stream->flow())));
}

void Complete(HttpContext& context, const ExchangePtr& exchange) {
  const auto max_prompts = static_cast<size_t>(context.api.options().max_items);
  absl::StatusOr<CompletionsRequest> request =
      ParseCompletions(std::exchange(exchange->mutable_request().body, {}), max_prompts,
                       context.api.options().max_message_bytes);
  if (!request.ok()) return Refuse(context, exchange, request.status());
  const absl::StatusOr<ModelHandle> model = context.api.FindGenerator(request->model);
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
