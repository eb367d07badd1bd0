// POST /api/embed and /api/embeddings, in Ollama's shape.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/context.h"
#include "server/http/json/writer.h"
#include "server/http/ollama/embed.h"

namespace longview::server {
namespace {

using longview::v1::EmbedResponse;
using OllamaAnswer = ListAnswer<EmbedResponse>;

void AppendItem(const EmbedResponse& item, std::string* out) {
  const auto& values = item.embedding();
  AppendJsonArray({values.data(), static_cast<size_t>(values.size())}, out);
}

// Durations are nanoseconds.
HttpResponse OllamaVectors(const OllamaAnswer& answer, OllamaRoute route) {
  constexpr double kNanoseconds = 1e9;
  HttpResponse response;
  std::string& body = response.body;
  const double seconds = answer.totals.queue_seconds + answer.totals.compute_seconds;
  if (route == OllamaRoute::kEmbeddings) {
    body = R"({"embedding":)";
    AppendItem(*answer.results.front(), &body);
    body.push_back('}');
  } else {
    body = R"({"model":)";
    AppendJsonString(answer.model.model, &body);
    body += R"(,"embeddings":[)";
    for (const absl::StatusOr<EmbedResponse>& item : answer.results) {
      if (body.back() != '[') body.push_back(',');
      AppendItem(*item, &body);
    }
    absl::StrAppend(
        &body, R"(],"total_duration":)", static_cast<int64_t>(std::llround(seconds * kNanoseconds)),
        R"(,"load_duration":0,"prompt_eval_count":)", answer.totals.usage.input_tokens, "}");
  }
  AddServerTiming(answer.totals.queue_seconds, answer.totals.compute_seconds, &response);
  return response;
}

void OllamaEmbed(HttpContext& context, const ExchangePtr& exchange, OllamaRoute route) {
  auto list = ParseOllamaEmbed(route, std::exchange(exchange->mutable_request().body, {}),
                               context.api.options().max_message_bytes);
  if (!list.ok()) return Refuse(context, exchange, list.status());
  const Api::Pending pending = context.api.EmbedList(
      exchange->info(), *std::move(list),
      [&context, exchange, route](absl::StatusOr<OllamaAnswer> answer) {
        if (!answer.ok()) return exchange->Fail(answer.status());
        const auto width = static_cast<size_t>(answer->results.front()->embedding_size());
        const size_t bytes = kJsonGrowth * sizeof(float) * width * answer->results.size();
        WriteSized(context, exchange, bytes,
                   [&context, exchange, route, answer = *std::move(answer)] {
                     HttpResponse response = OllamaVectors(answer, route);
                     const absl::Status status = CheckAnswerSize(context, response.body);
                     if (!status.ok()) return exchange->Fail(status);
                     exchange->Respond(std::move(response));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace

void AddOllamaEmbed(HttpContext& context, Router& router) {
  const auto add = [&](std::string_view path, OllamaRoute route) {
    router.Add(Verb::kPost, path,
               [&context, route](const ExchangePtr& exchange, const PathParameters&) {
                 OllamaEmbed(context, exchange, route);
               });
  };
  add("/api/embed", OllamaRoute::kEmbed);
  add("/api/embeddings", OllamaRoute::kEmbeddings);
}

}  // namespace longview::server
