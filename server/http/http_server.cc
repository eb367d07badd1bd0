#include "server/http/http_server.h"

#include <algorithm>
#include <iterator>
#include <optional>
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

Router MakeRouter(HttpContext& context, bool admin) {
  Router router;
  AddProbes(context, router);
  if (admin) return router;
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

// Routes that need no key: probes, and what tells a person or a scraper about the server.
bool IsOpen(std::string_view route) {
  constexpr std::string_view kOpen[] = {"/",
                                        "/livez",
                                        "/readyz",
                                        "/metrics",
                                        "/version",
                                        "/v2/health/live",
                                        "/v2/health/ready",
                                        "/v2/models/{m}/ready",
                                        "/v2/models/{m}/versions/{v}/ready"};
  return std::find(std::begin(kOpen), std::end(kOpen), route) != std::end(kOpen);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(Api& api, const Metrics& metrics, HttpServerOptions options)
      : context_{api, metrics, std::move(options.version), std::move(options.commit), absl::Now()},
        keys_(options.keys),
        admin_(options.admin),
        router_(MakeRouter(context_, options.admin)),
        listener_(WithAdmission(std::move(options.transport)),
                  [this](ExchangePtr exchange) { Dispatch(std::move(exchange)); }) {}

  absl::StatusOr<int> Start() { return listener_.Start(); }
  void Stop(absl::Time deadline) { listener_.Stop(deadline); }

 private:
  TransportOptions WithAdmission(TransportOptions transport) {
    if (keys_ != nullptr) {
      transport.admit = [this](const HttpRequest& head, CallInfo& info) {
        return RefuseWithoutKey(head, info);
      };
    }
    return transport;
  }

  // The answer to a call that lacks a key it needs. Fills in who calls.
  std::optional<HttpResponse> RefuseWithoutKey(const HttpRequest& head, CallInfo& info) {
    const Router::Match match = router_.Find(head.method, head.path);
    if (IsOpen(match.route)) return std::nullopt;
    absl::StatusOr<std::string> client = keys_->Authenticate(head.Header("Authorization"));
    if (client.ok()) {
      info.client = *std::move(client);
      return std::nullopt;
    }
    info.method = match.route.empty() ? kNoRoute : match.route;
    return ErrorResponse(context_.api.Record(info, "", "", client.status()), ShapeOfPath(head.path),
                         info.request_id);
  }

  void Dispatch(ExchangePtr exchange) {
    const HttpRequest& request = exchange->request();
    const Router::Match match = router_.Find(request.method, request.path);
    exchange->mutable_info().method = match.route.empty() ? kNoRoute : match.route;
    if (match.route.empty()) {
      return Refuse(
          context_, exchange,
          absl::NotFoundError(absl::StrCat("no such path: ", Quoted(request.path),
                                           admin_ ? "; there are /livez, /readyz, /metrics"
                                                  : "; /openapi.json lists what there is")));
    }
    if (!match.handler) return RefuseMethod(exchange, match.allow);
    if (!IsOpen(match.route)) context_.api.Trace(exchange->mutable_info());
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
  const ApiKeys* const keys_;
  const bool admin_;
  const Router router_;
  Listener listener_;
};

HttpServer::HttpServer(Api& api, const Metrics& metrics, HttpServerOptions options)
    : impl_(std::make_unique<Impl>(api, metrics, std::move(options))) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<int> HttpServer::Start() { return impl_->Start(); }
void HttpServer::Stop(absl::Time deadline) { impl_->Stop(deadline); }

}  // namespace longview::server
