// POST /embed.
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

absl::StatusOr<EmbedListRequest> ReadEmbed(TeiBody& body) {
  const absl::StatusOr<EmbedRequest> like = ReadEmbedOptions(body);
  if (!like.ok()) return like.status();
  const absl::StatusOr<json*> inputs = body.Required(kInputs);
  if (!inputs.ok()) return inputs.status();
  EmbedListRequest out{body.model(), "", {}, kInputs};
  if (!(*inputs)->is_array()) {
    if (absl::Status s = AddEmbedText(**inputs, kInputs, *like, out); !s.ok()) return s;
    return out;
  }
  json& list = **inputs;
  if (list.empty() || list.size() > kMaxEmbeddingInputs) {
    return FieldError(kInputs, absl::StrCat("has ", list.size(), " elements, expected 1 to ",
                                            kMaxEmbeddingInputs));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string field = absl::StrCat(kInputs, "[", i, "]");
    if (absl::Status s = AddEmbedText(list[i], field, *like, out); !s.ok()) return s;
  }
  return out;
}

HttpResponse Vectors(const ListAnswer<EmbedResponse>& answer) {
  HttpResponse response;
  std::string& body = response.body;
  body = "[";
  for (const absl::StatusOr<EmbedResponse>& item : answer.results) {
    if (body.size() > 1) body.push_back(',');
    const auto& values = item->embedding();
    AppendJsonArray({values.data(), static_cast<size_t>(values.size())}, &body);
  }
  body.push_back(']');
  AddServerTiming(answer.totals.queue_seconds, answer.totals.compute_seconds, &response);
  return response;
}

}  // namespace

void TeiEmbed(HttpContext& context, const ExchangePtr& exchange, TeiBody body) {
  absl::StatusOr<EmbedListRequest> list = ReadEmbed(body);
  if (!list.ok()) return Refuse(context, exchange, list.status());
  const Api::Pending pending = context.api.EmbedList(
      exchange->info(), *std::move(list),
      [&context, exchange](absl::StatusOr<ListAnswer<EmbedResponse>> answer) {
        if (!answer.ok()) return exchange->Fail(answer.status());
        const auto width = static_cast<size_t>(answer->results.front()->embedding_size());
        const size_t bytes = kJsonGrowth * sizeof(float) * width * answer->results.size();
        WriteSized(context, exchange, bytes, [&context, exchange, answer = *std::move(answer)] {
          HttpResponse response = Vectors(answer);
          const absl::Status status = CheckAnswerSize(context, response.body);
          if (!status.ok()) return exchange->Fail(status);
          exchange->Respond(std::move(response));
        });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace longview::server
