// POST /v1/rerank, in the shape of Jina's and Cohere's.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/context.h"
#include "server/http/json/writer.h"
#include "server/http/v1/rerank_request.h"

namespace longview::server {
namespace {

using longview::v1::RerankResponse;
using longview::v1::RerankResult;

HttpResponse Ranked(const RerankResponse& ranked, bool with_documents) {
  HttpResponse response;
  std::string& body = response.body;
  body = R"({"model":)";
  AppendJsonString(ranked.model(), &body);
  body += R"(,"results":[)";
  for (const RerankResult& result : ranked.results()) {
    if (body.back() != '[') body.push_back(',');
    absl::StrAppend(&body, R"({"index":)", result.index(), R"(,"relevance_score":)");
    AppendJson(result.relevance_score(), &body);
    if (with_documents) {
      body += R"(,"document":{"text":)";
      AppendJsonString(result.document(), &body);
      body.push_back('}');
    }
    body.push_back('}');
  }
  const auto& usage = ranked.usage();
  absl::StrAppend(&body, R"(],"usage":{"prompt_tokens":)", usage.input_tokens(),
                  R"(,"total_tokens":)", usage.input_tokens(), R"(,"truncated_tokens":)",
                  usage.truncated_tokens(), "}}");
  AddServerTiming(ranked.timing().queue_seconds(), ranked.timing().compute_seconds(), &response);
  return response;
}

void Rerank(HttpContext& context, const ExchangePtr& exchange) {
  const auto request = ParseRerank(std::exchange(exchange->mutable_request().body, {}),
                                   context.api.options().max_message_bytes);
  if (!request.ok()) return Refuse(context, exchange, request.status());
  const Api::Pending pending = context.api.Rerank(
      exchange->info(), *request,
      [&context, exchange,
       with_documents = request->return_documents()](absl::StatusOr<RerankResponse> ranked) {
        if (!ranked.ok()) return exchange->Fail(ranked.status());
        WriteSized(context, exchange, kJsonGrowth * ranked->ByteSizeLong(),
                   [&context, exchange, with_documents, ranked = *std::move(ranked)] {
                     HttpResponse response = Ranked(ranked, with_documents);
                     const absl::Status status = CheckAnswerSize(context, response.body);
                     if (!status.ok()) return exchange->Fail(status);
                     exchange->Respond(std::move(response));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace

void AddRerank(HttpContext& context, Router& router) {
  // Cohere's own client asks for the second.
  for (const std::string_view path : {"/v1/rerank", "/v2/rerank"}) {
    router.Add(Verb::kPost, path, [&context](const ExchangePtr& exchange, const PathParameters&) {
      Rerank(context, exchange);
    });
  }
}

}  // namespace longview::server
