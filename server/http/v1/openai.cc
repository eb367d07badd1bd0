// OpenAI's model list, and its completions as far as the models go.
#include <array>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/errors.h"
#include "server/http/body_error.h"
#include "server/http/context.h"
#include "server/http/json/message.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"

namespace longview::server {
namespace {

using nlohmann::json;

// OpenAI's members in front of those of longview.v1.Model.
void AppendModel(const HttpContext& context, const longview::v1::Model& model, std::string* out) {
  out->append(R"({"id":)");
  AppendJsonString(model.name(), out);
  out->append(absl::StrCat(R"(,"object":"model","created":)", absl::ToUnixSeconds(context.started),
                           R"(,"owned_by":"longview",)"));
  std::string fields;
  AppendMessage(model, &fields);
  out->append(fields, 1);  // Without its brace.
}

absl::StatusOr<HttpResponse> ListModels(const HttpContext& context) {
  const auto models = context.api.ListModels();
  if (!models.ok()) return models.status();
  HttpResponse response;
  response.body = R"({"object":"list","data":[)";
  for (const auto& model : models->models()) {
    if (response.body.back() == '}') response.body += ",";
    AppendModel(context, model, &response.body);
  }
  response.body += "]}";
  return response;
}

absl::StatusOr<HttpResponse> GetModel(const HttpContext& context, const std::string& name) {
  longview::v1::GetModelRequest request;
  request.set_model(name);
  const auto model = context.api.GetModel(request);
  if (!model.ok()) return model.status();
  HttpResponse response;
  AppendModel(context, *model, &response.body);
  return response;
}

constexpr std::array kCompletionMembers = {"model",
                                           "prompt",
                                           "max_tokens",
                                           "temperature",
                                           "top_p",
                                           "n",
                                           "stop",
                                           "seed",
                                           "logprobs",
                                           "echo",
                                           "stream",
                                           "stream_options",
                                           "top_k",
                                           "min_tokens",
                                           "repetition_penalty",
                                           "num_beams",
                                           "truncate",
                                           "length_penalty",
                                           "no_repeat_ngram_size",
                                           "early_stopping",
                                           "user",
                                           "best_of",
                                           "presence_penalty",
                                           "frequency_penalty",
                                           "logit_bias",
                                           "suffix"};

// The model a completion asks for; INVALID_ARGUMENT for members that do not exist.
absl::StatusOr<std::string> CompletionModel(const HttpRequest& request) {
  const absl::StatusOr<json> body = ParseJson(request.body);
  if (!body.ok()) return body.status();
  if (absl::Status status = ExpectObject(*body); !status.ok()) return status;
  for (const auto& [name, value] : body->items()) {
    bool known = false;
    for (const char* member : kCompletionMembers) known |= name == member;
    if (!known) return FieldError(name, "unknown member");
  }
  const auto prompt = body->find("prompt");
  if (prompt == body->end()) return FieldError("prompt", "is missing");
  if (!prompt->is_string() && !IsArray(*prompt)) {
    return FieldError("prompt", absl::StrCat("expected a string, strings, token ids or lists of "
                                             "token ids, got ",
                                             Describe(*prompt)));
  }
  const auto model = body->find("model");
  return model == body->end() ? std::string() : ReadString(*model, "model");
}

void Complete(const HttpContext& context, const ExchangePtr& exchange) {
  const absl::StatusOr<std::string> model = CompletionModel(exchange->request());
  if (!model.ok()) return Refuse(context, exchange, model.status());
  exchange->Fail(
      context.api.RefuseTask(exchange->info(), *model, "", models::Task::kTextGeneration));
}

}  // namespace

void AddOpenAi(HttpContext& context, Router& router) {
  router.Add(Verb::kGet, "/v1/models",
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               return ListModels(context);
             }));
  router.Add(Verb::kGet, "/v1/models/{id}",
             Immediate(context, [&context](const HttpRequest&, const PathParameters& p) {
               return GetModel(context, p[0]);
             }));
  router.Add(Verb::kPost, "/v1/completions",
             [&context](const ExchangePtr& exchange, const PathParameters&) {
               Complete(context, exchange);
             });
  for (const std::string_view path : {"/v1/chat/completions", "/v1/responses"}) {
    const auto refuse = [path](const HttpRequest&, const PathParameters&) {
      return absl::StatusOr<HttpResponse>(absl::NotFoundError(
          std::string(path).append(" is not served: use /v1/completions with a prompt")));
    };
    router.Add(Verb::kPost, path, Immediate(context, refuse));
    router.Add(Verb::kGet, path, Immediate(context, refuse));
  }
}

}  // namespace longview::server
