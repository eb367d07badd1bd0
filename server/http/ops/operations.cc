// /metrics, /livez, /readyz, /version.
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "server/http/context.h"

namespace longview::server {
namespace {

HttpResponse Health(const char* name, bool well, const std::string& why = "") {
  nlohmann::json body = {{name, well}};
  if (!why.empty()) body["reason"] = why;
  HttpResponse response = JsonResponse(body.dump());
  response.status = well ? 200 : 503;
  if (!well) response.headers.emplace_back("Retry-After", "1");
  return response;
}

void AddHealth(HttpContext& context, Router& router, std::string_view live,
               std::string_view ready) {
  router.Add(Verb::kGet, live,
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               const std::string why = context.api.NotLive();
               return Health("live", why.empty(), why);
             }));
  router.Add(Verb::kGet, ready,
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               return Health("ready", context.api.ServerReady());
             }));
}

}  // namespace

void AddProbes(HttpContext& context, Router& router) {
  AddHealth(context, router, "/livez", "/readyz");
  router.Add(Verb::kGet, "/metrics",
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               HttpResponse response;
               response.content_type = "text/plain; version=0.0.4; charset=utf-8";
               response.body = context.metrics.Serialize();
               return response;
             }));
}

void AddOperations(HttpContext& context, Router& router) {
  AddHealth(context, router, "/v2/health/live", "/v2/health/ready");
  router.Add(Verb::kGet, "/health",
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               HttpResponse response = Health("ready", context.api.ServerReady());
               response.body.clear();
               return response;
             }));
  router.Add(Verb::kGet, "/version",
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               return JsonResponse(nlohmann::json{
                   {"name", "longview"}, {"version", context.version}, {"commit", context.commit}}
                                       .dump());
             }));
}

}  // namespace longview::server
