// The Open Inference Protocol's metadata, configuration, statistics and repository.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/errors.h"
#include "server/http/context.h"
#include "server/http/json/body_error.h"
#include "server/http/json/message.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"

namespace longview::server {
namespace {

using google::protobuf::Message;
using nlohmann::json;

HttpResponse MessageResponse(const Message& message) {
  HttpResponse response;
  AppendMessage(message, &response.body);
  return response;
}

// {m} and, if the route has it, {v}.
std::string_view ModelOf(const PathParameters& p) {
  return p.empty() ? "" : std::string_view(p[0]);
}
std::string_view VersionOf(const PathParameters& p) {
  return p.size() < 2 ? "" : std::string_view(p[1]);
}

absl::StatusOr<HttpResponse> ModelReady(const HttpContext& context, const PathParameters& p) {
  ASSIGN_OR_RETURN(const bool ready, context.api.ModelReady(ModelOf(p), VersionOf(p)));
  HttpResponse response =
      JsonResponse(json{{"name", std::string(ModelOf(p))}, {"ready", ready}}.dump());
  response.status = ready ? 200 : 503;
  if (!ready) response.headers.emplace_back("Retry-After", "1");
  return response;
}

// The body of a repository call: nothing, or an object.
absl::StatusOr<json> OptionalObject(const HttpRequest& request) {
  if (request.body.empty()) return json::object();
  return ParseObject(request.body);
}

absl::StatusOr<HttpResponse> RepositoryIndex(const HttpContext& context,
                                             const HttpRequest& request) {
  ASSIGN_OR_RETURN(const json body, OptionalObject(request));
  bool ready_only = false;
  for (const auto& [name, value] : body.items()) {
    if (name != "ready") return FieldError(name, "unknown member, expected ready");
    ASSIGN_OR_RETURN(const bool ready, ReadBool(value, name));
    ready_only = ready;
  }
  const auto index = context.api.RepositoryIndex(ready_only);
  HttpResponse response;
  for (const auto& model : index.models()) {
    response.body += response.body.empty() ? "[" : ",";
    AppendMessage(model, &response.body);
  }
  response.body += response.body.empty() ? "[]" : "]";
  return response;
}

absl::Status ReadParameter(const json& value, const std::string& name,
                           inference::ModelRepositoryParameter* out) {
  if (value.is_boolean()) {
    out->set_bool_param(value.get<bool>());
  } else if (value.is_number_integer()) {
    out->set_int64_param(value.get<int64_t>());
  } else if (value.is_string()) {
    out->set_string_param(value.get<std::string>());
  } else {
    return FieldError(
        "parameters." + name,
        absl::StrCat("expected a string, an integer, true or false, got ", Describe(value)));
  }
  return absl::OkStatus();
}

absl::Status ReadParameters(
    const json& body,
    google::protobuf::Map<std::string, inference::ModelRepositoryParameter>* out) {
  for (const auto& [name, members] : body.items()) {
    if (name != "parameters") return FieldError(name, "unknown member, expected parameters");
    if (!members.is_object()) return FieldError(name, "expected an object");
    for (const auto& [key, value] : members.items()) {
      RETURN_IF_ERROR(ReadParameter(value, key, &(*out)[key]));
    }
  }
  return absl::OkStatus();
}

// Load and unload: answered when done.
template <typename Request, typename Response>
HttpHandler RepositoryChange(HttpContext& context,
                             void (Api::*call)(const CallInfo&, const Request&, Reply<Response>)) {
  return [&context, call](const ExchangePtr& exchange, const PathParameters& p) {
    Request request;
    request.set_model_name(std::string(ModelOf(p)));
    const absl::StatusOr<json> body = OptionalObject(exchange->request());
    const absl::Status status =
        body.ok() ? ReadParameters(*body, request.mutable_parameters()) : body.status();
    if (!status.ok()) return Refuse(context, exchange, status);
    (context.api.*call)(exchange->info(), request,
                        [&context, exchange](absl::StatusOr<Response> response) {
                          if (!response.ok()) return Refuse(context, exchange, response.status());
                          Answer(context, exchange, JsonResponse("{}"));
                        });
  };
}

}  // namespace

void AddModels(HttpContext& context, Router& router) {
  Api& api = context.api;
  router.Add(Verb::kGet, "/v2", Immediate(context, [&api](const auto&, const auto&) {
               return MessageResponse(api.ServerMetadata());
             }));

  using Answer = std::function<absl::StatusOr<HttpResponse>(const PathParameters&)>;
  const auto add_both = [&](std::string_view plain, std::string_view versioned, Answer answer) {
    for (const std::string_view path : {plain, versioned}) {
      router.Add(Verb::kGet, path,
                 Immediate(context, [answer](const HttpRequest&, const PathParameters& p) {
                   return answer(p);
                 }));
    }
  };
  // An answer that is one message, or an error.
  const auto message = [](const auto& found) -> absl::StatusOr<HttpResponse> {
    if (!found.ok()) return found.status();
    return MessageResponse(*found);
  };
  add_both("/v2/models/{m}", "/v2/models/{m}/versions/{v}", [&api, message](const auto& p) {
    return message(api.ModelMetadata(ModelOf(p), VersionOf(p)));
  });
  add_both("/v2/models/{m}/stats", "/v2/models/{m}/versions/{v}/stats",
           [&api, message](const auto& p) {
             return message(api.ModelStatistics(ModelOf(p), VersionOf(p)));
           });
  add_both("/v2/models/{m}/ready", "/v2/models/{m}/versions/{v}/ready",
           [&context](const auto& p) { return ModelReady(context, p); });
  add_both("/v2/models/{m}/config", "/v2/models/{m}/versions/{v}/config",
           [&api](const auto& p) -> absl::StatusOr<HttpResponse> {
             ASSIGN_OR_RETURN(const auto found, api.ModelConfig(ModelOf(p), VersionOf(p)));
             return MessageResponse(found.config());
           });
  router.Add(Verb::kGet, "/v2/models/stats",
             Immediate(context, [&api, message](const auto&, const auto&) {
               return message(api.ModelStatistics("", ""));
             }));

  router.Add(Verb::kPost, "/v2/repository/index",
             Immediate(context, [&context](const HttpRequest& request, const PathParameters&) {
               return RepositoryIndex(context, request);
             }));
  router.Add(Verb::kPost, "/v2/repository/models/{m}/load",
             RepositoryChange(context, &Api::RepositoryModelLoad));
  router.Add(Verb::kPost, "/v2/repository/models/{m}/unload",
             RepositoryChange(context, &Api::RepositoryModelUnload));
}

}  // namespace longview::server
