// POST /similarity: how near sentences are to one.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/body_error.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"
#include "server/http/tei/embed_request.h"
#include "server/http/tei/tei.h"
#include "server/http/v1/embeddings_request.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using longview::v1::EmbedResponse;
using nlohmann::json;

constexpr char kSource[] = "inputs.source_sentence";
constexpr char kSentences[] = "inputs.sentences";

// The source's text comes first.
absl::StatusOr<EmbedListRequest> ReadSimilarity(TeiBody& body) {
  absl::StatusOr<TeiBody> parameters = body.Nested("parameters");
  if (!parameters.ok()) return parameters.status();
  absl::StatusOr<EmbedRequest> like = ReadEmbedOptions(*parameters);
  if (!like.ok()) return like.status();
  like->set_normalize(true);
  if (body.Find("inputs") == nullptr) return FieldError("inputs", "is missing");
  absl::StatusOr<TeiBody> inputs = body.Nested("inputs");
  if (!inputs.ok()) return inputs.status();
  json* const source = inputs->Find("source_sentence");
  if (source == nullptr) return FieldError(kSource, "is missing");
  json* const sentences = inputs->Find("sentences");
  if (sentences == nullptr) return FieldError(kSentences, "is missing");
  if (!sentences->is_array() || sentences->empty() || sentences->size() >= kMaxEmbeddingInputs) {
    return FieldError(kSentences, absl::StrCat("expected 1 to ", kMaxEmbeddingInputs - 1,
                                               " strings, got ", Describe(*sentences)));
  }
  EmbedListRequest out{body.model(), "", {}, "inputs"};
  if (absl::Status s = AddEmbedText(*source, kSource, *like, out); !s.ok()) return s;
  for (size_t i = 0; i < sentences->size(); ++i) {
    const std::string field = absl::StrCat(kSentences, "[", i, "]");
    if (absl::Status s = AddEmbedText((*sentences)[i], field, *like, out); !s.ok()) return s;
  }
  return out;
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
  absl::StatusOr<EmbedListRequest> list = ReadSimilarity(body);
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
