// POST /tokenize and /detokenize: what a model's tokenizer makes of a text, and back.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "models/tokenizing.h"
#include "server/errors.h"
#include "server/http/context.h"
#include "server/http/json/writer.h"
#include "server/http/tokens/tokenize_request.h"

namespace longview::server {
namespace {

using models::TextToken;

void AppendMember(std::string_view name, int64_t value, std::string* out) {
  if (out->back() != '{') out->push_back(',');
  out->append("\"").append(name).append("\":");
  AppendJson(value, out);
}

// A token with its place; `end` is what the dialect calls that.
void AppendToken(const TextToken& token, TokenizeDialect dialect, std::string* out) {
  const bool tei = dialect == TokenizeDialect::kTei;
  if (out->back() != '[') out->push_back(',');
  out->push_back('{');
  AppendMember("id", token.id, out);
  out->append(R"(,"text":)");
  AppendJsonString(token.text, out);
  out->append(R"(,"special":)");
  AppendJson(token.special, out);
  if (tei && token.special) {
    out->append(R"(,"start":null,"stop":null})");
    return;
  }
  AppendMember("start", token.start, out);
  AppendMember(tei ? "stop" : "end", token.end, out);
  out->push_back('}');
}

// An answer in the request's dialect, of all its texts.
std::string TokensBody(const TokenizeRequest& request, const ServedModel& model,
                       const std::vector<std::vector<TextToken>>& texts) {
  std::string body;
  if (request.dialect == TokenizeDialect::kTei) {
    body = "[";
    for (const std::vector<TextToken>& tokens : texts) {
      if (body.size() > 1) body.push_back(',');
      body.push_back('[');
      for (const TextToken& token : tokens) AppendToken(token, request.dialect, &body);
      body.push_back(']');
    }
    body.push_back(']');
    return body;
  }
  const std::vector<TextToken>& tokens = texts.front();
  body = "{";
  if (request.dialect == TokenizeDialect::kOwn) {
    body += R"("model":)";
    AppendJsonString(model.name, &body);
  }
  AppendMember("count", std::ssize(tokens), &body);
  if (request.dialect == TokenizeDialect::kVllm) {
    AppendMember("max_model_len", model.model->info().max_tokens, &body);
  }
  body += R"(,"tokens":[)";
  for (const TextToken& token : tokens) {
    if (request.dialect == TokenizeDialect::kOwn) {
      AppendToken(token, request.dialect, &body);
    } else {
      if (body.back() != '[') body.push_back(',');
      AppendJson(int64_t{token.id}, &body);
    }
  }
  body += "]}";
  return body;
}

absl::StatusOr<HttpResponse> Tokenize(HttpContext& context, const ServedModel& model,
                                      const models::Tokenizing& tokenizer,
                                      const TokenizeRequest& request) {
  std::vector<std::vector<TextToken>> texts;
  for (size_t i = 0; i < request.texts.size(); ++i) {
    ASSIGN_OR_RETURN(auto tokens, tokenizer.Tokenize(request.texts[i], request.add_special_tokens));
    texts.push_back(std::move(tokens));
  }
  HttpResponse response = JsonResponse(TokensBody(request, model, texts));
  RETURN_IF_ERROR(CheckAnswerSize(context, response.body));
  return response;
}

absl::StatusOr<HttpResponse> Detokenize(HttpContext& context, const ServedModel&,
                                        const models::Tokenizing& tokenizer,
                                        const DetokenizeRequest& request) {
  ASSIGN_OR_RETURN(const auto text, tokenizer.Detokenize(request.ids, request.skip_special_tokens));
  HttpResponse response = JsonResponse(R"({"prompt":)");
  AppendJsonString(text, &response.body);
  response.body += R"(,"text":)";
  AppendJsonString(text, &response.body);
  response.body += "}";
  RETURN_IF_ERROR(CheckAnswerSize(context, response.body));
  return response;
}

// Null: it has none.
const models::Tokenizing* TokenizerOf(const ServedModel& model) {
  return dynamic_cast<const models::Tokenizing*>(model.model.get());
}

absl::Status CheckTokenizer(const ServedModel& model) {
  if (model.model->info().has_tokenizer && TokenizerOf(model) != nullptr) return absl::OkStatus();
  return MakeError(absl::StatusCode::kUnimplemented,
                   absl::StrCat("model ", Quoted(model.name), " has no tokenizer"),
                   {.reason = "TASK_NOT_SUPPORTED", .retry_after = {}, .param = "model"});
}

// Runs `answer_of` on a thread that may take its time, and counts what it works with among the
// client's bytes: some hundred for each token.
template <typename Request, typename AnswerOf>
void Run(HttpContext& context, const ExchangePtr& exchange, absl::StatusOr<Request> request,
         size_t tokens, AnswerOf answer_of) {
  constexpr size_t kTokenBytes = 128;
  if (!request.ok()) return Refuse(context, exchange, request.status());
  const absl::StatusOr<ModelHandle> model =
      FindOnlyModel(context.api.context(), request->model, "",
                    [](const models::ModelInfo& info) { return info.has_tokenizer; });
  const absl::Status found = model.ok() ? CheckTokenizer(**model) : model.status();
  if (!found.ok()) {
    return exchange->Fail(context.api.Record(exchange->info(), request->model, "", found));
  }
  WriteSized(context, exchange, tokens * kTokenBytes,
             [&context, exchange, model = *model, request = *std::move(request), answer_of] {
               absl::StatusOr<HttpResponse> response =
                   answer_of(context, *model, *TokenizerOf(*model), request);
               const absl::Status status =
                   context.api.Record(exchange->info(), model->name, "", response.status());
               if (!status.ok()) return exchange->Fail(status);
               exchange->Respond(*std::move(response));
             });
}

}  // namespace

void AddTokens(HttpContext& context, Router& router) {
  const size_t max_texts = static_cast<size_t>(context.api.options().max_items);
  const size_t max_bytes = context.api.options().max_message_bytes;
  router.Add(Verb::kPost, "/tokenize",
             [&context, max_texts, max_bytes](const ExchangePtr& exchange, const PathParameters&) {
               const std::string body = std::exchange(exchange->mutable_request().body, {});
               auto request = ParseTokenize(body, exchange->request().query, max_texts, max_bytes);
               Run(context, exchange, std::move(request), body.size(), &Tokenize);
             });
  router.Add(Verb::kPost, "/detokenize",
             [&context, max_bytes](const ExchangePtr& exchange, const PathParameters&) {
               const std::string body = std::exchange(exchange->mutable_request().body, {});
               auto request = ParseDetokenize(body, exchange->request().query, max_bytes);
               const size_t tokens = request.ok() ? request->ids.size() : 0;
               Run(context, exchange, std::move(request), tokens, &Detokenize);
             });
}

}  // namespace longview::server
