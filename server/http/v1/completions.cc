// POST /v1/completions, OpenAI's shape: whole, or as server-sent events.
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

// What models say about options of HuggingFace's names, in OpenAI's.
absl::Status InOpenAiNames(const absl::Status& status, size_t item, size_t items) {
  const absl::Status named = WithParam(Renamed(status, {{"max_new_tokens", "max_tokens"},
                                                        {"min_new_tokens", "min_tokens"},
                                                        {"num_return_sequences", "n"},
                                                        {"text", "prompt"},
                                                        {"token_ids", "prompt"}}));
  return items > 1 ? Prefixed(absl::StrCat("prompt[", item, "]: "), named) : named;
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
  auto response = std::make_shared<HttpResponse>();
  GenerationSink sink;
  sink.answer = [&context, names = std::move(names), response](std::vector<Completed>& completed) {
    response->body = CompletionBody(names, completed);
    const CallTotals totals = TotalsOf(completed);
    AddServerTiming(totals.queue_seconds, totals.compute_seconds, response.get());
    return CheckAnswerSize(context, response->body);
  };
  sink.on_end = [exchange, response](const GenerationEnd& end) {
    if (!end.status.ok()) return exchange->Fail(end.status);
    exchange->Respond(std::move(*response));
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
      ParseCompletions(exchange->request().body, max_prompts);
  if (!request.ok()) return Refuse(context, exchange, request.status());
  exchange->mutable_request().body = {};
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
