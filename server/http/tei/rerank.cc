// POST /rerank: text-embeddings-inference's form for `texts`, Jina's for `documents`.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"
#include "server/http/member_readers.h"
#include "server/http/tei/tei.h"
#include "server/http/tei/tei_body.h"
#include "server/http/v1/rerank.h"

namespace longview::server {
namespace {

using longview::v1::RerankRequest;
using longview::v1::RerankResponse;
using longview::v1::RerankResult;
using nlohmann::json;

constexpr char kTexts[] = "texts";

// A body that was read.
struct TeiRerankBody {
  RerankRequest request;
  bool has_query = false, has_texts = false;
};

absl::Status ReadTeiTexts(json& texts, const std::string& name, TeiRerankBody& out) {
  if (!texts.is_array()) {
    return FieldError(name, absl::StrCat("expected strings, got ", Describe(texts)));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSIGN_OR_RETURN(std::string text, TakeString(texts[i], absl::StrCat(name, "[", i, "]")));
    out.request.add_documents(std::move(text));
  }
  out.has_texts = true;
  return absl::OkStatus();
}

const MemberTable<TeiRerankBody>& TeiRerankTable() {
  using enum MemberOf;
  using Body = TeiRerankBody;
  static const auto* const table = new MemberTable<TeiRerankBody>{
      {"model", kLongview, ReadBefore<Body>()},
      {"query", kTei, Reads(+[](Body& b, std::string q) {
         b.request.set_query(std::move(q));
         b.has_query = true;
       })},
      {kTexts, kTei, ReadTeiTexts},
      {"raw_scores", kTei, Reads(+[](Body& b, bool f) { b.request.set_raw_scores(f); })},
      {"return_text", kTei, Reads(+[](Body& b, bool f) { b.request.set_return_documents(f); })},
      {"truncate", kTei, Reads(+[](Body& b, bool f) { b.request.set_truncate(f); })},
      {"truncation_direction", kTei, ReadsDirection(+[](Body& b, std::string d) {
         b.request.set_truncation_direction(std::move(d));
       })},
      {"truncate_prompt_tokens", kVllm,
       Reads(+[](Body& b, int32_t n) { b.request.set_truncate_prompt_tokens(n); })},
      {"parameters", kHuggingFace, ReadBefore<Body>()},
      {"candidate_labels", kHuggingFace, kNoZeroShot},
      {"documents", kJina, Refused{"given beside texts; send one"}},
      {"top_n", kJina, Refused{"goes with documents"}},
      {"return_documents", kJina, Refused{"goes with documents; return_text with texts"}},
      {"rank_fields", kCohere, Refused{"goes with documents"}},
      {"max_tokens_per_doc", kCohere, Refused{"goes with documents"}},
  };
  return *table;
}

absl::StatusOr<RerankRequest> ReadTeiRerank(TeiBody body) {
  TeiRerankBody read;
  read.request.set_model(std::move(body.model));
  RETURN_IF_ERROR(ReadTei(TeiRerankTable(), body.object, read));
  if (!read.has_query) return FieldError("query", "is missing");
  if (!read.has_texts) return FieldError(kTexts, "is missing");
  return std::move(read.request);
}

// Jina's form, which vLLM's clients send here, too.
void RerankDocuments(HttpContext& context, const ExchangePtr& exchange, TeiBody body) {
  absl::StatusOr<RerankBody> read = ReadRerank(std::move(body.object), exchange->request().query);
  if (!read.ok()) return Refuse(context, exchange, read.status());
  AnswerRerank(context, exchange, *std::move(read), "1");
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
  if (body.object.contains("documents") && !body.object.contains(kTexts)) {
    return RerankDocuments(context, exchange, std::move(body));
  }
  const absl::StatusOr<RerankRequest> request = ReadTeiRerank(std::move(body));
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

std::vector<MemberInfo> TeiRerankMembers() { return TeiRerankTable().infos(); }

}  // namespace longview::server
