#include "server/http/http_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/context.h"
#include "server/http/deadline.h"
#include "server/http/error_body.h"
#include "server/http/transport/listener.h"

namespace longview::server {
namespace {

// The `method` label of requests that match no route.
constexpr std::string_view kNoRoute = "other";

Router MakeRouter(HttpContext& context) {
  Router router;
  AddOperations(context, router);
  AddConsole(context, router);
  AddModels(context, router);
  AddInference(context, router);
  AddTyped(context, router);
  AddOpenAi(context, router);
  AddCompletions(context, router);
  AddEmbeddings(context, router);
  return router;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(Api& api, const Metrics& metrics, HttpServerOptions options)
      : context_{api, metrics, std::move(options.version), std::move(options.commit), absl::Now()},
        router_(MakeRouter(context_)),
        listener_(std::move(options.transport),
                  [this](ExchangePtr exchange) { Dispatch(std::move(exchange)); }) {}

  absl::StatusOr<int> Start() { return listener_.Start(); }
  void Stop(absl::Time deadline) { listener_.Stop(deadline); }

 private:
  void Dispatch(ExchangePtr exchange) {
    const HttpRequest& request = exchange->request();
    const Router::Match match = router_.Find(request.method, request.path);
    exchange->mutable_info().method = match.route.empty() ? kNoRoute : match.route;
    if (match.route.empty()) {
      return Refuse(context_, exchange,
                    absl::NotFoundError(absl::StrCat("no such path: ", Quoted(request.path),
                                                     "; /openapi.json lists what there is")));
    }
    if (!match.handler) return RefuseMethod(exchange, match.allow);
    const absl::StatusOr<absl::Time> deadline = RequestDeadline(request);
    if (!deadline.ok()) return Refuse(context_, exchange, deadline.status());
    exchange->mutable_info().deadline = *deadline;
    (*match.handler)(exchange, match.parameters);
  }

  void RefuseMethod(const ExchangePtr& exchange, const std::string& allow) {
    const HttpRequest& request = exchange->request();
    const absl::Status status = context_.api.Record(
        exchange->info(), "", "",
        absl::InvalidArgumentError(absl::StrCat("method ", Quoted(request.method), " of ",
                                                Quoted(request.path), ": allowed are ", allow)));
    HttpResponse response =
        ErrorResponse(status, ShapeOfPath(request.path), exchange->info().request_id);
    response.status = 405;
    response.headers.emplace_back("Allow", allow);
    exchange->Respond(std::move(response));
  }

  HttpContext context_;
  const Router router_;
  Listener listener_;
};

HttpServer::HttpServer(Api& api, const Metrics& metrics, HttpServerOptions options)
    : impl_(std::make_unique<Impl>(api, metrics, std::move(options))) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<int> HttpServer::Start() { return impl_->Start(); }
void HttpServer::Stop(absl::Time deadline) { impl_->Stop(deadline); }

}  // namespace longview::server
