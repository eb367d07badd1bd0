// POST /embed.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/body_error.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"
#include "server/http/tei/tei.h"
#include "server/http/tei/tei_body.h"
#include "server/http/v1/embeddings_request.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using longview::v1::EmbedResponse;
using nlohmann::json;
using List = ListRequest<EmbedRequest>;

constexpr char kInputs[] = "inputs";

// All but the text.
absl::StatusOr<EmbedRequest> ReadOptions(TeiBody& body) {
  EmbedRequest out;
  const absl::StatusOr<bool> normalize = body.Flag("normalize", true);
  if (!normalize.ok()) return normalize.status();
  out.set_normalize(*normalize);
  const absl::StatusOr<bool> truncate = body.Flag("truncate", false);
  if (!truncate.ok()) return truncate.status();
  out.set_truncate(*truncate);
  absl::StatusOr<std::string> direction = body.Direction();
  if (!direction.ok()) return direction.status();
  out.set_truncation_direction(*std::move(direction));
  if (const json* name = body.Find("prompt_name")) {
    absl::StatusOr<std::string> prompt = ReadString(*name, "prompt_name");
    if (!prompt.ok()) return prompt.status();
    constexpr size_t kLongest = 128;  // It is copied into every item.
    if (prompt->size() > kLongest) {
      return FieldError("prompt_name", absl::StrCat("has ", prompt->size(), " bytes, the limit is ",
                                                    kLongest));
    }
    out.set_prompt_name(*std::move(prompt));
  }
  if (const json* dimensions = body.Find("dimensions")) {
    const absl::StatusOr<int32_t> number = ReadNumber<int32_t>(*dimensions, "dimensions");
    if (!number.ok()) return number.status();
    out.set_dimensions(*number);
  }
  return out;
}

absl::Status AddText(json& value, const std::string& field, const EmbedRequest& like, List& out) {
  absl::StatusOr<std::string> text = TakeString(value, field);
  if (!text.ok()) return text.status();
  out.items.push_back(like);
  out.items.back()->set_text(*std::move(text));
  return absl::OkStatus();
}

absl::StatusOr<List> ReadRequest(TeiBody& body) {
  const absl::StatusOr<EmbedRequest> like = ReadOptions(body);
  if (!like.ok()) return like.status();
  const absl::StatusOr<json*> inputs = body.Required(kInputs);
  if (!inputs.ok()) return inputs.status();
  List out{body.model(), "", {}, kInputs};
  if (!(*inputs)->is_array()) {
    if (absl::Status s = AddText(**inputs, kInputs, *like, out); !s.ok()) return s;
    return out;
  }
  json& list = **inputs;
  if (list.empty() || list.size() > kMaxEmbeddingInputs) {
    return FieldError(kInputs, absl::StrCat("has ", list.size(), " elements, expected 1 to ",
                                            kMaxEmbeddingInputs));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string field = absl::StrCat(kInputs, "[", i, "]");
    if (absl::Status s = AddText(list[i], field, *like, out); !s.ok()) return s;
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

void TeiEmbed(HttpContext& context, const ExchangePtr& exchange) {
  absl::StatusOr<TeiBody> body = TeiBody::Parse(
      std::exchange(exchange->mutable_request().body, {}), exchange->request().query,
      context.api.options().max_message_bytes);
  if (!body.ok()) return Refuse(context, exchange, body.status());
  absl::StatusOr<List> list = ReadRequest(*body);
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
