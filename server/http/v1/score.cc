// POST /score, in vLLM's shape.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/api/calls/score_answer.h"
#include "server/http/context.h"
#include "server/http/json/writer.h"
#include "server/http/v1/score_request.h"

namespace longview::server {
namespace {

HttpResponse Scores(const ScoreAnswer& answer, const std::string& request_id) {
  HttpResponse response;
  std::string& body = response.body;
  body = R"({"id":)";
  AppendJsonString(absl::StrCat("score-", request_id), &body);
  absl::StrAppend(&body, R"(,"object":"list","created":)", absl::ToUnixSeconds(absl::Now()),
                  R"(,"model":)");
  AppendJsonString(answer.model.model, &body);
  body += R"(,"data":[)";
  for (size_t i = 0; i < answer.scores.size(); ++i) {
    absl::StrAppend(&body, i > 0 ? "," : "", R"({"index":)", i, R"(,"object":"score","score":)");
    AppendJson(answer.scores[i], &body);
    body.push_back('}');
  }
  const models::ItemUsage& usage = answer.totals.usage;
  absl::StrAppend(&body, R"(],"usage":{"prompt_tokens":)", usage.input_tokens,
                  R"(,"total_tokens":)", usage.input_tokens, R"(,"truncated_tokens":)",
                  usage.truncated_tokens, "}}");
  AddServerTiming(answer.totals.queue_seconds, answer.totals.compute_seconds, &response);
  return response;
}

void Score(HttpContext& context, const ExchangePtr& exchange) {
  const absl::StatusOr<ScoreRequest> request =
      ParseScore(std::exchange(exchange->mutable_request().body, {}), exchange->request().query,
                 context.api.options().max_message_bytes);
  if (!request.ok()) return Refuse(context, exchange, request.status());
  const Api::Pending pending = context.api.Score(
      exchange->info(), *request, [&context, exchange](absl::StatusOr<ScoreAnswer> answer) {
        if (!answer.ok()) return exchange->Fail(answer.status());
        constexpr size_t kScoreBytes = 64;
        WriteSized(context, exchange, kScoreBytes * answer->scores.size(),
                   [&context, exchange, answer = *std::move(answer)] {
                     HttpResponse response = Scores(answer, exchange->info().request_id);
                     const absl::Status status = CheckAnswerSize(context, response.body);
                     if (!status.ok()) return exchange->Fail(status);
                     exchange->Respond(std::move(response));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace

void AddScore(HttpContext& context, Router& router) {
  router.Add(Verb::kPost, "/score", [&context](const ExchangePtr& exchange, const PathParameters&) {
    Score(context, exchange);
  });
}

}  // namespace longview::server
