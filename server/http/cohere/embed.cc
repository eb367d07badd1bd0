// POST /v2/embed and /v1/embed, in Cohere's shape.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/cohere/embed_request.h"
#include "server/http/context.h"
#include "server/http/json/writer.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using longview::v1::EmbedResponse;
using EmbedAnswer = ListAnswer<EmbedResponse>;

// The parts of an answer besides its vectors.
struct CohereNames {
  std::string id;
  std::string_view api_version;
  std::vector<std::string> texts;
  std::vector<VectorForm> forms;
};

void AppendVectors(const EmbedAnswer& answer, VectorForm form, std::string* out) {
  out->push_back('[');
  for (const absl::StatusOr<EmbedResponse>& item : answer.results) {
    if (out->back() != '[') out->push_back(',');
    const auto& values = item->embedding();
    AppendVector({values.data(), static_cast<size_t>(values.size())}, form, out);
  }
  out->push_back(']');
}

// By form; the first form of the call has a plain list where no form was asked for.
void AppendEmbeddings(const EmbedAnswer& answer, const CohereNames& names, std::string* out) {
  if (names.forms.empty()) return AppendVectors(answer, VectorForm::kFloat, out);
  out->push_back('{');
  for (const VectorForm form : names.forms) {
    if (out->back() != '{') out->push_back(',');
    absl::StrAppend(out, "\"", std::string(NameOf(form)), "\":");
    AppendVectors(answer, form, out);
  }
  out->push_back('}');
}

HttpResponse CohereEmbeddings(const EmbedAnswer& answer, const CohereNames& names) {
  HttpResponse response;
  std::string& body = response.body;
  body = R"({"id":)";
  AppendJsonString(names.id, &body);
  absl::StrAppend(&body, R"(,"response_type":")",
                  names.forms.empty() ? "embeddings_floats" : "embeddings_by_type",
                  R"(","embeddings":)");
  AppendEmbeddings(answer, names, &body);
  body += R"(,"texts":[)";
  for (const std::string& text : names.texts) {
    if (body.back() != '[') body.push_back(',');
    AppendJsonString(text, &body);
  }
  absl::StrAppend(&body, R"(],"meta":{"api_version":{"version":")", std::string(names.api_version),
                  R"("},"billed_units":{"input_tokens":)", answer.totals.usage.input_tokens,
                  R"(},"tokens":{"input_tokens":)", answer.totals.usage.input_tokens, "}}}");
  AddServerTiming(answer.totals.queue_seconds, answer.totals.compute_seconds, &response);
  return response;
}

// About as many bytes as the answer will have.
size_t EmbeddingsBytes(const EmbedAnswer& answer, const CohereNames& names) {
  const auto width = static_cast<size_t>(answer.results.front()->embedding_size());
  const size_t forms = names.forms.empty() ? 1 : names.forms.size();
  size_t bytes = kJsonGrowth * sizeof(float) * width * answer.results.size() * forms;
  for (const std::string& text : names.texts) bytes += text.size();
  return bytes;
}

void CohereEmbed(HttpContext& context, const ExchangePtr& exchange, std::string_view api_version) {
  absl::StatusOr<CohereEmbedRequest> request = ParseCohereEmbed(
      std::exchange(exchange->mutable_request().body, {}), context.api.options().max_message_bytes);
  if (!request.ok()) return Refuse(context, exchange, request.status());
  CohereNames names{absl::StrCat("embd-", exchange->info().request_id), api_version,
                    std::move(request->texts), std::move(request->forms)};
  if (names.forms.empty() && api_version != "1") names.forms = {VectorForm::kFloat};
  ListRequest<EmbedRequest> list{std::move(request->model), "", {}, "texts"};
  for (EmbedRequest& item : request->items) list.items.push_back(std::move(item));
  const Api::Pending pending = context.api.EmbedList(
      exchange->info(), std::move(list),
      [&context, exchange, names = std::move(names)](absl::StatusOr<EmbedAnswer> answer) mutable {
        if (!answer.ok()) return exchange->Fail(answer.status());
        const size_t bytes = EmbeddingsBytes(*answer, names);
        WriteSized(context, exchange, bytes,
                   [&context, exchange, names = std::move(names), answer = *std::move(answer)] {
                     HttpResponse response = CohereEmbeddings(answer, names);
                     const absl::Status status = CheckAnswerSize(context, response.body);
                     if (!status.ok()) return exchange->Fail(status);
                     exchange->Respond(std::move(response));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace

void AddCohere(HttpContext& context, Router& router) {
  const auto add = [&](std::string_view path, std::string_view api_version) {
    router.Add(Verb::kPost, path,
               [&context, api_version](const ExchangePtr& exchange, const PathParameters&) {
                 CohereEmbed(context, exchange, api_version);
               });
  };
  add("/v1/embed", "1");
  add("/v2/embed", "2");
}

}  // namespace longview::server
