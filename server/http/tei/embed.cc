// POST /embed.
#include <string>
#include <utility>
#include <vector>

#include "models/status_macros.h"
#include "server/http/embed_inputs.h"
#include "server/http/json/writer.h"
#include "server/http/tei/embed_request.h"
#include "server/http/tei/tei.h"

namespace longview::server {
namespace {

using longview::v1::EmbedResponse;

absl::StatusOr<EmbedListRequest> ReadEmbed(TeiBody body) {
  ASSIGN_OR_RETURN(TeiEmbedBody read, ReadTeiEmbed(std::move(body.object)));
  ASSIGN_OR_RETURN(auto items, ReadEmbedInputs(read.inputs, kInputs, read.like));
  return TeiEmbedList(body.model, std::move(items));
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
  absl::StatusOr<EmbedListRequest> list = ReadEmbed(std::move(body));
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
