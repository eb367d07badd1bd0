#include "server/http/serve/http_server.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/models/unserved.h"
#include "server/errors.h"
#include "server/http/body_workers.h"
#include "server/http/context.h"
#include "server/http/cors.h"
#include "server/http/deadline.h"
#include "server/http/error_body.h"
#include "server/http/inflate.h"
#include "server/http/origin.h"
#include "server/http/transport/listener.h"
#include "server/security/roles.h"
#include "server/status_map_http.h"

namespace longview::server {
namespace {

// The `method` label of requests that match no route.
constexpr std::string_view kNoRoute = "other";

// The answer for a path that is not served, whose page is to read the answer that says so.
constexpr std::string_view kAnyMethods = "GET, HEAD, POST";

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
  AddRerank(context, router);
  AddScore(context, router);
  AddCohere(context, router);
  AddOllama(context, router);
  AddTei(context, router);
  AddSearch(context, router);
  AddTokens(context, router);
  return router;
}

// Bodies of the repository's routes, and of what is no route, in bytes.
constexpr size_t kSmallBody = 64 << 10;

// Whether the body may turn out longer than kSmallBody.
bool MayBeLong(const HttpRequest& head) {
  if (!head.Header("Transfer-Encoding").empty()) return true;
  const std::string_view length = head.Header("Content-Length");
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  return error == std::errc::result_out_of_range || bytes > kSmallBody;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(Api& api, const Metrics& metrics, HttpServerOptions options)
      : context_{api,
                 metrics,
                 std::move(options.version),
                 std::move(options.commit),
                 absl::Now(),
                 workers_,
                 options.transport.bytes,
                 options.log,
                 options.refuse_token_ids,
                 std::move(options.search_folder)},
        keys_(options.keys),
        proxies_(std::move(options.proxies)),
        admin_(options.admin),
        max_body_bytes_(options.transport.max_body_bytes),
        origin_(std::move(options.names)),
        cors_(std::move(options.cors_origins)),
        log_(options.log),
        router_(MakeRouter(context_, options.admin)),
        listener_(WithAdmission(std::move(options.transport))) {}

  absl::StatusOr<int> Start() { return listener_.Start(); }
  void Drain() { listener_.Leave(); }
  void Stop(absl::Time deadline) {
    listener_.Stop(deadline);
    workers_.Stop();
  }

 private:
  TransportOptions WithAdmission(TransportOptions transport) {
    transport.admit = [this](const HttpRequest& head, CallInfo& info) { return Admit(head, info); };
    if (!admin_) {
      transport.fields_for_page = [this](std::string_view origin) {
        return cors_.FieldsFor(origin);
      };
    }
    return transport;
  }

  // All that can be said before a body is read. Fills in who calls what.
  HeadVerdict Admit(const HttpRequest& head, CallInfo& info) {
    Router::Match match = router_.Find(head.method, head.path);
    info.method = match.route.empty() ? kNoRoute : match.route;
    Locate(head, info);
    if (!admin_ && Cors::IsPreflight(head)) {
      return {.serve = [this, match = std::move(match)](const ExchangePtr& exchange) {
        AnswerPreflight(match, exchange);
      }};
    }
    absl::Status status = absl::OkStatus();
    if (keys_ != nullptr) status = keys_->Admit(head.Header("Authorization"), info);
    if (status.ok() && PermissionOf(info.method) == Permission::kControl) {
      status = origin_.Check(head.Header("Host"), head.Header("Origin"));
    }
    if (!status.ok()) {
      return {.refusal = ErrorResponse(context_.api.Record(info, "", "", status),
                                       ShapeOfPath(head.path), info.request_id)};
    }
    if (match.handler == nullptr) {
      if (MayBeLong(head)) return {.refusal = Mismatch(match, head, info)};
      return {.max_body_bytes = kSmallBody,
              .serve = [this, match = std::move(match)](const ExchangePtr& exchange) {
                exchange->Respond(Mismatch(match, exchange->request(), exchange->info()));
              }};
    }
    const bool small = match.route.starts_with("/v2/repository/");
    const size_t limit = small ? std::min(kSmallBody, max_body_bytes_) : max_body_bytes_;
    return {.max_body_bytes = head.method == "POST" ? limit : 0,
            .serve = [this, match = std::move(match)](ExchangePtr exchange) mutable {
              Serve(std::move(exchange), std::move(match));
            }};
  }

  // Sets the client's address and unit of fairness, also behind proxies.
  void Locate(const HttpRequest& head, CallInfo& info) const {
    std::vector<std::string_view> forwarded;
    if (!proxies_.empty()) forwarded = head.HeaderValues("X-Forwarded-For");
    info.address = proxies_.ClientOf(head.peer, forwarded);
    info.client = FairnessUnit(info.address);
  }

  // Answers a browser that asks, without a key, whether a page may call.
  void AnswerPreflight(const Router::Match& match, const ExchangePtr& exchange) {
    const HttpRequest& request = exchange->request();
    const std::string_view origin = request.Header("Origin");
    absl::Status allowed = cors_.Check(origin);
    if (allowed.ok() && PermissionOf(exchange->info().method) == Permission::kControl) {
      allowed = origin_.Check(request.Header("Host"), origin);
    }
    if (!allowed.ok()) {
      // The browser tells its user no more than that it was refused.
      if (log_ != nullptr) {
        log_->Warning("a page may not call", {{"origin", Excerpt(origin)},
                                              {"client", exchange->info().caller()},
                                              {"method", exchange->info().method},
                                              {"error", std::string(allowed.message())}});
      }
      return Refuse(context_, exchange, allowed);
    }
    const std::string_view methods = match.allow.empty() ? kAnyMethods : match.allow;
    Answer(context_, exchange, Cors::Preflight(request, methods));
  }

  absl::Status NoSuchPath(std::string_view path) const {
    std::string message = absl::StrCat("no such path: ", Quoted(path));
    if (const std::string_view instead = InsteadOfPath(path); !admin_ && !instead.empty()) {
      absl::StrAppend(&message, "; ", std::string(instead));
    } else if (admin_) {
      message += "; there are /livez, /readyz, /metrics";
    } else if (const std::string near = router_.Near(path); !near.empty()) {
      absl::StrAppend(&message, "; there is ", Excerpt(near));
    } else {
      message += "; /openapi.json lists what there is";
    }
    return absl::NotFoundError(message);
  }

  // The recorded answer to an unknown path or a wrong method.
  HttpResponse Mismatch(const Router::Match& match, const HttpRequest& request,
                        const CallInfo& info) {
    const bool unknown = match.route.empty();
    const absl::Status problem =
        unknown ? NoSuchPath(request.path)
                : absl::InvalidArgumentError(absl::StrCat("method ", Quoted(request.method), " of ",
                                                          Quoted(request.path), ": allowed are ",
                                                          match.allow));
    HttpResponse response = ErrorResponse(context_.api.Record(info, "", "", problem),
                                          ShapeOfPath(request.path), info.request_id);
    if (unknown) return response;
    response.status = 405;
    response.headers.emplace_back("Allow", match.allow);
    return response;
  }

  // A request that has a handler.
  void Serve(ExchangePtr exchange, Router::Match match) {
    const HttpRequest& request = exchange->request();
    if (PermissionOf(exchange->info().method) != Permission::kOpen) {
      context_.api.Trace(exchange->mutable_info());
    }
    const absl::StatusOr<absl::Time> deadline = RequestDeadline(request);
    if (!deadline.ok()) return Refuse(context_, exchange, deadline.status());
    exchange->mutable_info().deadline = *deadline;
    const size_t bytes = request.body.size();
    if (bytes > 0 && IsCompressed(request.Header("Content-Encoding"))) {
      return Inflate(std::move(exchange), std::move(match),
                     std::min(BodyWorkers::kVeryLong, max_body_bytes_));
    }
    RunSized(context_, exchange, bytes,
             [exchange, match = std::move(match)] { Handle(exchange, match); });
  }

  static void Handle(const ExchangePtr& exchange, const Router::Match& match) {
    (*match.handler)(exchange, match.parameters);
    // The engine owns the rest of the body and counts it itself.
    exchange->mutable_request().held.Reset();
  }

  // On a worker: few bytes may become many. What they become is never kept waiting, so that a
  // client cannot have many bodies inflated at a time.
  void Inflate(ExchangePtr exchange, Router::Match match, size_t limit) {
    RunSized(context_, exchange, std::max(limit, BodyWorkers::kShort + 1),
             [this, exchange, match = std::move(match), limit]() mutable {
               HttpRequest& request = exchange->mutable_request();
               auto plain = Decompress(request.Header("Content-Encoding"), request.body, limit);
               if (plain.ok()) {
                 request.body = *std::move(plain);
                 return Handle(exchange, match);
               }
               const bool longer = GetErrorDetail(plain.status()).reason == kBodyTooLarge;
               if (longer && limit < max_body_bytes_) {
                 return Inflate(std::move(exchange), std::move(match), max_body_bytes_);
               }
               Refuse(context_, exchange, plain.status());
             });
  }

  BodyWorkers workers_;
  HttpContext context_;
  const ApiKeys* const keys_;
  const TrustedProxies proxies_;
  const bool admin_;
  const size_t max_body_bytes_;
  const OriginCheck origin_;
  const Cors cors_;
  Log* const log_;  // May be null.
  const Router router_;
  Listener listener_;
};

HttpServer::HttpServer(Api& api, const Metrics& metrics, HttpServerOptions options)
    : impl_(std::make_unique<Impl>(api, metrics, std::move(options))) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<int> HttpServer::Start() { return impl_->Start(); }
void HttpServer::Drain() { impl_->Drain(); }
void HttpServer::Stop(absl::Time deadline) { impl_->Stop(deadline); }

}  // namespace longview::server
