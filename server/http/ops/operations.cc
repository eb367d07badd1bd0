// /metrics, /livez, /readyz, /version.
#include <string>

#include "nlohmann/json.hpp"
#include "server/http/context.h"

namespace longview::server {
namespace {

HttpResponse Health(const char* name, bool well) {
  HttpResponse response = JsonResponse(nlohmann::json{{name, well}}.dump());
  response.status = well ? 200 : 503;
  if (!well) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

void AddOperations(HttpContext& context, Router& router) {
  const auto live = [&context](const HttpRequest&, const PathParameters&) {
    return Health("live", context.api.ServerLive());
  };
  const auto ready = [&context](const HttpRequest&, const PathParameters&) {
    return Health("ready", context.api.ServerReady());
  };
  router.Add(Verb::kGet, "/livez", Immediate(context, live));
  router.Add(Verb::kGet, "/readyz", Immediate(context, ready));
  router.Add(Verb::kGet, "/v2/health/live", Immediate(context, live));
  router.Add(Verb::kGet, "/v2/health/ready", Immediate(context, ready));

  router.Add(Verb::kGet, "/version",
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               return JsonResponse(nlohmann::json{
                   {"name", "longview"}, {"version", context.version}, {"commit", context.commit}}
                                       .dump());
             }));
  router.Add(Verb::kGet, "/metrics",
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               HttpResponse response;
               response.content_type = "text/plain; version=0.0.4; charset=utf-8";
               response.body = context.metrics.Serialize();
               return response;
             }));
}

}  // namespace longview::server
