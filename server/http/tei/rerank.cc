// POST /rerank.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/body_error.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"
#include "server/http/tei/tei.h"
#include "server/http/tei/tei_body.h"

namespace longview::server {
namespace {

using longview::v1::RerankRequest;
using longview::v1::RerankResponse;
using longview::v1::RerankResult;
using nlohmann::json;

constexpr char kTexts[] = "texts";

absl::Status ReadTexts(json& texts, RerankRequest& out) {
  if (!texts.is_array()) {
    return FieldError(kTexts, absl::StrCat("expected strings, got ", Describe(texts)));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StatusOr<std::string> text = TakeString(texts[i], absl::StrCat(kTexts, "[", i, "]"));
    if (!text.ok()) return text.status();
    out.add_documents(*std::move(text));
  }
  return absl::OkStatus();
}

absl::StatusOr<RerankRequest> ReadRerank(TeiBody& body) {
  RerankRequest out;
  out.set_model(body.model());
  const absl::StatusOr<json*> query = body.Required("query");
  if (!query.ok()) return query.status();
  absl::StatusOr<std::string> text = TakeString(**query, "query");
  if (!text.ok()) return text.status();
  out.set_query(*std::move(text));
  const absl::StatusOr<json*> texts = body.Required(kTexts);
  if (!texts.ok()) return texts.status();
  if (absl::Status status = ReadTexts(**texts, out); !status.ok()) return status;
  const std::pair<const char*, void (RerankRequest::*)(bool)> flags[] = {
      {"raw_scores", &RerankRequest::set_raw_scores},
      {"return_text", &RerankRequest::set_return_documents}};
  for (const auto& [name, set] : flags) {
    const absl::StatusOr<bool> flag = body.Flag(name, false);
    if (!flag.ok()) return flag.status();
    (out.*set)(*flag);
  }
  const absl::StatusOr<std::optional<bool>> truncate = body.OptionalFlag("truncate");
  if (!truncate.ok()) return truncate.status();
  if (*truncate) out.set_truncate(**truncate);
  const auto tokens = body.OptionalNumber("truncate_prompt_tokens");
  if (!tokens.ok()) return tokens.status();
  if (*tokens) out.set_truncate_prompt_tokens(**tokens);
  absl::StatusOr<std::string> direction = body.Direction();
  if (!direction.ok()) return direction.status();
  out.set_truncation_direction(*std::move(direction));
  return out;
}

HttpResponse Ranks(const RerankResponse& ranked, bool with_texts) {
  HttpResponse response;
  std::string& body = response.body;
  body = "[";
  for (const RerankResult& result : ranked.results()) {
    if (body.back() != '[') body.push_back(',');
    absl::StrAppend(&body, R"({"index":)", result.index(), R"(,"score":)");
    AppendJson(result.relevance_score(), &body);
    if (with_texts) {
      body += R"(,"text":)";
      AppendJsonString(result.document(), &body);
    }
    body.push_back('}');
  }
  body.push_back(']');
  AddServerTiming(ranked.timing().queue_seconds(), ranked.timing().compute_seconds(), &response);
  return response;
}

}  // namespace

void TeiRerank(HttpContext& context, const ExchangePtr& exchange, TeiBody body) {
  const absl::StatusOr<RerankRequest> request = ReadRerank(body);
  if (!request.ok()) return Refuse(context, exchange, request.status());
  const Api::Pending pending = context.api.RerankAs(
      exchange->info(), *request, kTexts,
      [&context, exchange,
       with_texts = request->return_documents()](absl::StatusOr<RerankResponse> ranked) {
        if (!ranked.ok()) return exchange->Fail(ranked.status());
        WriteSized(context, exchange, kJsonGrowth * ranked->ByteSizeLong(),
                   [&context, exchange, with_texts, ranked = *std::move(ranked)] {
                     HttpResponse response = Ranks(ranked, with_texts);
                     const absl::Status status = CheckAnswerSize(context, response.body);
                     if (!status.ok()) return exchange->Fail(status);
                     exchange->Respond(std::move(response));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace longview::server
