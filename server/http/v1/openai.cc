// OpenAI's model list, and the calls of its API that are not served.
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/http/context.h"
#include "server/http/json/message.h"
#include "server/http/json/writer.h"

namespace longview::server {
namespace {

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
  ASSIGN_OR_RETURN(const auto models, context.api.ListModels());
  HttpResponse response;
  response.body = R"({"object":"list","data":[)";
  for (const auto& model : models.models()) {
    if (response.body.back() == '}') response.body += ",";
    AppendModel(context, model, &response.body);
  }
  response.body += "]}";
  return response;
}

absl::StatusOr<HttpResponse> GetModel(const HttpContext& context, const std::string& name) {
  longview::v1::GetModelRequest request;
  request.set_model(name);
  ASSIGN_OR_RETURN(const auto model, context.api.GetModel(request));
  HttpResponse response;
  AppendModel(context, model, &response.body);
  return response;
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
