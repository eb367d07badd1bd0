// POST /v1/rerank and /v2/rerank, in the shape of Jina's and Cohere's.
#include "server/http/v1/rerank.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/json/writer.h"

namespace longview::server {
namespace {

using longview::v1::RerankResponse;
using longview::v1::RerankResult;

// The parts of a request that its answer needs.
struct RankNames {
  std::string_view api_version;
  bool with_documents = false;
  std::vector<std::string> as_sent;
  int documents = 0;
};

void AppendDocument(const RerankResult& result, const RankNames& names, std::string* out) {
  const std::string& as_sent = names.as_sent[static_cast<size_t>(result.index())];
  if (!as_sent.empty()) {
    out->append(as_sent);
    return;
  }
  out->append(R"({"text":)");
  AppendJsonString(result.document(), out);
  out->push_back('}');
}

// Cohere counts a search unit for each hundred documents begun.
void AppendMeta(const RankNames& names, std::string* out) {
  constexpr int kUnit = 100;
  absl::StrAppend(out, R"("meta":{"api_version":{"version":")", std::string(names.api_version),
                  R"("},"billed_units":{"search_units":)", (names.documents + kUnit - 1) / kUnit,
                  "}}");
}

HttpResponse Ranked(const RerankResponse& ranked, const RankNames& names,
                    const std::string& request_id) {
  HttpResponse response;
  std::string& body = response.body;
  body = R"({"id":)";
  AppendJsonString(absl::StrCat("rerank-", request_id), &body);
  body += R"(,"model":)";
  AppendJsonString(ranked.model(), &body);
  body += R"(,"results":[)";
  for (const RerankResult& result : ranked.results()) {
    if (body.back() != '[') body.push_back(',');
    absl::StrAppend(&body, R"({"index":)", result.index(), R"(,"relevance_score":)");
    AppendJson(result.relevance_score(), &body);
    if (names.with_documents) {
      body += R"(,"document":)";
      AppendDocument(result, names, &body);
    }
    body.push_back('}');
  }
  body += "],";
  AppendMeta(names, &body);
  const auto& usage = ranked.usage();
  absl::StrAppend(&body, R"(,"usage":{"prompt_tokens":)", usage.input_tokens(),
                  R"(,"total_tokens":)", usage.input_tokens(), R"(,"truncated_tokens":)",
                  usage.truncated_tokens(), "}}");
  AddServerTiming(ranked.timing().queue_seconds(), ranked.timing().compute_seconds(), &response);
  return response;
}

// About as many bytes as the answer will have.
size_t RankedBytes(const RerankResponse& ranked, const RankNames& names) {
  size_t bytes = kJsonGrowth * ranked.ByteSizeLong();
  for (const std::string& document : names.as_sent) bytes += document.size();
  return bytes;
}

}  // namespace

void AnswerRerank(HttpContext& context, const ExchangePtr& exchange, RerankBody body,
                  std::string_view api_version) {
  const longview::v1::RerankRequest& request = body.request;
  RankNames names{api_version, request.return_documents(), std::move(body.as_sent),
                  request.documents_size()};
  const Api::Pending pending = context.api.Rerank(
      exchange->info(), request,
      [&context, exchange,
       names = std::move(names)](absl::StatusOr<RerankResponse> ranked) mutable {
        if (!ranked.ok()) return exchange->Fail(ranked.status());
        const size_t bytes = RankedBytes(*ranked, names);
        WriteSized(context, exchange, bytes,
                   [&context, exchange, names = std::move(names), ranked = *std::move(ranked)] {
                     HttpResponse response = Ranked(ranked, names, exchange->info().request_id);
                     const absl::Status status = CheckAnswerSize(context, response.body);
                     if (!status.ok()) return exchange->Fail(status);
                     exchange->Respond(std::move(response));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

void AddRerank(HttpContext& context, Router& router) {
  const auto add = [&](std::string_view path, std::string_view api_version) {
    router.Add(Verb::kPost, path,
               [&context, api_version](const ExchangePtr& exchange, const PathParameters&) {
                 absl::StatusOr<RerankBody> body =
                     ParseRerank(std::exchange(exchange->mutable_request().body, {}),
                                 context.api.options().max_message_bytes);
                 if (!body.ok()) return Refuse(context, exchange, body.status());
                 AnswerRerank(context, exchange, *std::move(body), api_version);
               });
  };
  add("/v1/rerank", "1");
  add("/v2/rerank", "2");  // Cohere's current client asks for this.
}

}  // namespace longview::server
