// The console page, the API page and the API description: files built into the program.
#include "server/http/assets.h"
#include "server/http/context.h"

namespace longview::server {

namespace {

// A page of our own that may ask this server and nobody else.
HttpResponse Page(std::string_view html) {
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
      "style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'");
  response.body = html;
  return response;
}

}  // namespace

void AddConsole(HttpContext& context, Router& router) {
  router.Add(Verb::kGet, "/", Immediate(context, [](const HttpRequest&, const PathParameters&) {
               return Page(ConsolePage());
             }));
  router.Add(Verb::kGet, "/docs", Immediate(context, [](const HttpRequest&, const PathParameters&) {
               return Page(DocsPage());
             }));
  router.Add(Verb::kGet, "/openapi.json",
             Immediate(context, [](const HttpRequest&, const PathParameters&) {
               return JsonResponse(std::string(OpenApiDocument()));
             }));
}

}  // namespace longview::server
