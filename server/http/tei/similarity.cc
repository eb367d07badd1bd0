// POST /similarity: how near sentences are to one.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/http/embed_inputs.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"
#include "server/http/tei/embed_request.h"
#include "server/http/tei/tei.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using longview::v1::EmbedResponse;
using nlohmann::json;

constexpr char kSource[] = "inputs.source_sentence";
constexpr char kSentences[] = "inputs.sentences";

// The source's text comes first.
absl::StatusOr<EmbedListRequest> ReadSimilarity(TeiBody body) {
  ASSIGN_OR_RETURN(TeiEmbedBody read, ReadTeiEmbed(std::move(body.object)));
  read.like->set_normalize(true);
  json& inputs = read.inputs;
  if (!inputs.is_object()) {
    return FieldError(kInputs, absl::StrCat("expected an object, got ", Describe(inputs)));
  }
  if (!inputs.contains("source_sentence")) return FieldError(kSource, "is missing");
  if (!inputs.contains("sentences")) return FieldError(kSentences, "is missing");
  json& sentences = inputs["sentences"];
  if (!sentences.is_array() || sentences.empty() || sentences.size() >= kMaxEmbeddingInputs) {
    return FieldError(kSentences, absl::StrCat("expected 1 to ", kMaxEmbeddingInputs - 1,
                                               " strings, got ", Describe(sentences)));
  }
  ASSIGN_OR_RETURN(std::vector<EmbedRequest> items, read.like.Copies(1 + sentences.size()));
  absl::Status status = ReadEmbedText(inputs["source_sentence"], kSource, items.front());
  for (size_t i = 0; i < sentences.size() && status.ok(); ++i) {
    const std::string field = absl::StrCat(kSentences, "[", i, "]");
    status = ReadEmbedText(sentences[i], field, items[1 + i]);
  }
  if (!status.ok()) return status;
  return TeiEmbedList(body.model, std::move(items));
}

// The vectors have length 1.
float Cosine(const EmbedResponse& a, const EmbedResponse& b) {
  double sum = 0;
  for (int i = 0; i < a.embedding_size(); ++i) sum += double{a.embedding(i)} * b.embedding(i);
  return static_cast<float>(sum);
}

HttpResponse Similarities(const ListAnswer<EmbedResponse>& answer) {
  HttpResponse response;
  std::string& body = response.body;
  body = "[";
  for (size_t i = 1; i < answer.results.size(); ++i) {
    if (i > 1) body.push_back(',');
    AppendJson(Cosine(*answer.results[0], *answer.results[i]), &body);
  }
  body.push_back(']');
  AddServerTiming(answer.totals.queue_seconds, answer.totals.compute_seconds, &response);
  return response;
}

}  // namespace

void TeiSimilarity(HttpContext& context, const ExchangePtr& exchange, TeiBody body) {
  absl::StatusOr<EmbedListRequest> list = ReadSimilarity(std::move(body));
  if (!list.ok()) return Refuse(context, exchange, list.status());
  const Api::Pending pending =
      context.api.EmbedList(exchange->info(), *std::move(list),
                            [exchange](absl::StatusOr<ListAnswer<EmbedResponse>> answer) {
                              if (!answer.ok()) return exchange->Fail(answer.status());
                              exchange->Respond(Similarities(*answer));
                            });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace longview::server
