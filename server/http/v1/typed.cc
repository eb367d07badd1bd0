// The typed calls of longview.v1 over HTTP.
#include <string>
#include <utility>
#include <vector>

#include "models/status_macros.h"
#include "server/api/calls/copies.h"
#include "server/http/context.h"
#include "server/http/error_body.h"
#include "server/http/json/message.h"
#include "server/http/json/writer.h"
#include "server/http/v1/typed_body.h"

namespace longview::server {
namespace {

template <typename Request, typename Response>
using ApiCall = Api::Pending (Api::*)(const CallInfo&, const Request&, Reply<Response>);

template <typename Response>
HttpResponse TypedResponse(const Response& response) {
  HttpResponse http;
  AppendMessage(response, &http.body);
  if constexpr (requires { response.timing(); }) {
    AddServerTiming(response.timing().queue_seconds(), response.timing().compute_seconds(), &http);
  }
  return http;
}

template <typename Request, typename Response>
void Run(HttpContext& context, const ExchangePtr& exchange, TypedBody& body,
         ApiCall<Request, Response> call) {
  Request request;
  if (absl::Status status = body.MoveTo(&request); !status.ok()) {
    return Refuse(context, exchange, status);
  }
  const Api::Pending pending = (context.api.*call)(
      exchange->info(), request, [&context, exchange](absl::StatusOr<Response> response) {
        if (!response.ok()) return exchange->Fail(response.status());
        const size_t bytes = kJsonGrowth * response->ByteSizeLong();
        WriteSized(context, exchange, bytes, [&context, exchange, response = *std::move(response)] {
          HttpResponse http = TypedResponse(response);
          if (absl::Status status = CheckAnswerSize(context, http.body); !status.ok()) {
            return exchange->Fail(status);
          }
          exchange->Respond(std::move(http));
        });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

// A route whose body is parsed first, and becomes one of `Requests`.
template <typename... Requests, typename Handle>
void AddBodyRoute(HttpContext& context, Router& router, std::string_view path, Handle handle) {
  router.Add(Verb::kPost, path,
             [&context, handle](const ExchangePtr& exchange, const PathParameters&) {
               const google::protobuf::Descriptor* const messages[] = {Requests::descriptor()...};
               absl::StatusOr<TypedBody> body = TypedBody::Parse(
                   exchange->mutable_request(), context.api.options().max_message_bytes, messages);
               if (!body.ok()) return Refuse(context, exchange, body.status());
               handle(exchange, *body);
             });
}

template <typename Request, typename Response>
using ListCall = Api::Pending (Api::*)(const CallInfo&, ListRequest<Request>,
                                       Api::ListReply<Response>);

// The fields of a single answer that stand in each result: all but model and version.
constexpr int kFirstOwnField = 3;

template <typename Response>
HttpResponse ListResponse(const ListAnswer<Response>& answer, const std::string& request_id) {
  HttpResponse http;
  std::string& body = http.body;
  body = R"({"model":)";
  AppendJsonString(answer.model.model, &body);
  body += R"(,"version":)";
  AppendJsonString(answer.model.version, &body);
  body += R"(,"results":[)";
  for (const absl::StatusOr<Response>& result : answer.results) {
    if (body.back() != '[') body.push_back(',');
    if (result.ok()) {
      AppendFields(*result, kFirstOwnField, &body);
    } else {
      body += ErrorResponse(result.status(), ErrorShape::kObject, request_id).body;
    }
  }
  body += R"(],"usage":)";
  AppendMessage(ToUsage(answer.totals.usage), &body);
  body.push_back('}');
  AddServerTiming(answer.totals.queue_seconds, answer.totals.compute_seconds, &http);
  return http;
}

// About as many bytes as the answer will have.
template <typename Response>
size_t AnswerBytes(const ListAnswer<Response>& answer) {
  size_t bytes = 0;
  for (const absl::StatusOr<Response>& result : answer.results) {
    constexpr size_t kErrorBytes = 256;
    bytes += result.ok() ? kJsonGrowth * result->ByteSizeLong() : kErrorBytes;
  }
  return bytes;
}

// A request for each text.
template <typename Request>
absl::StatusOr<ListRequest<Request>> ToList(const Like<Request>& like, TextList texts,
                                            bool partial) {
  ASSIGN_OR_RETURN(std::vector<Request> items, like.Copies(texts.size(), {.elements = "texts"}));
  ListRequest<Request> list{like->model(),        like->version(), {}, "text", partial, 0,
                            like->return_logits()};
  if constexpr (requires { like->top_k(); }) list.top_k = like->top_k();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].ok()) {
      list.items.push_back(texts[i].status());
      continue;
    }
    items[i].set_text(*std::move(texts[i]));
    list.items.push_back(std::move(items[i]));
  }
  return list;
}

// Runs a typed call on a list of texts.
template <typename Request, typename Response>
void RunList(HttpContext& context, const ExchangePtr& exchange, TypedBody& body, TextList texts,
             bool partial, ListCall<Request, Response> call) {
  Like<Request> like;
  if (absl::Status status = body.MoveTo(like.operator->()); !status.ok()) {
    return Refuse(context, exchange, status);
  }
  absl::StatusOr<ListRequest<Request>> list = ToList(like, std::move(texts), partial);
  if (!list.ok()) return Refuse(context, exchange, list.status());
  const Api::Pending pending = (context.api.*call)(
      exchange->info(), *std::move(list),
      [&context, exchange](absl::StatusOr<ListAnswer<Response>> answer) {
        if (!answer.ok()) return exchange->Fail(answer.status());
        WriteSized(context, exchange, AnswerBytes(*answer),
                   [&context, exchange, answer = *std::move(answer)] {
                     HttpResponse http = ListResponse(answer, exchange->info().request_id);
                     if (absl::Status status = CheckAnswerSize(context, http.body); !status.ok()) {
                       return exchange->Fail(status);
                     }
                     exchange->Respond(std::move(http));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

// One text, or a list of them.
template <typename Request, typename Response>
void RunOneOrMany(HttpContext& context, const ExchangePtr& exchange, TypedBody& body,
                  ApiCall<Request, Response> one, ListCall<Request, Response> many) {
  auto texts = body.TakeTexts(static_cast<size_t>(context.api.options().max_items));
  if (!texts.ok()) return Refuse(context, exchange, texts.status());
  const absl::StatusOr<bool> partial = body.TakeFlag("partial");
  if (!partial.ok()) return Refuse(context, exchange, partial.status());
  if (!texts->has_value()) return Run(context, exchange, body, one);
  RunList(context, exchange, body, **std::move(texts), *partial, many);
}

template <typename Request, typename Response>
void AddListCall(HttpContext& context, Router& router, std::string_view path,
                 ApiCall<Request, Response> one, ListCall<Request, Response> many) {
  AddBodyRoute<Request>(context, router, path,
                        [&context, one, many](const ExchangePtr& exchange, TypedBody& body) {
                          RunOneOrMany(context, exchange, body, one, many);
                        });
}

template <typename Request, typename Response>
void AddCall(HttpContext& context, Router& router, std::string_view path,
             ApiCall<Request, Response> call) {
  AddBodyRoute<Request>(context, router, path,
                        [&context, call](const ExchangePtr& exchange, TypedBody& body) {
                          Run(context, exchange, body, call);
                        });
}

}  // namespace

void AddTyped(HttpContext& context, Router& router) {
  using longview::v1::ClassifyImageRequest;
  using longview::v1::ClassifyRequest;
  AddBodyRoute<ClassifyRequest, ClassifyImageRequest>(
      context, router, "/v1/classify", [&context](const ExchangePtr& exchange, TypedBody& body) {
        if (body.Has("image")) {
          return Run(context, exchange, body, &Api::ClassifyImage);
        }
        RunOneOrMany(context, exchange, body, &Api::Classify, &Api::ClassifyList);
      });
  AddListCall(context, router, "/v1/classify-tokens", &Api::ClassifyTokens,
              &Api::ClassifyTokensList);
  AddCall(context, router, "/v1/answer", &Api::AnswerQuestion);
  AddListCall(context, router, "/v1/fill-mask", &Api::FillMask, &Api::FillMaskList);
  AddCall(context, router, "/v1/estimate", &Api::Estimate);
  AddCall(context, router, "/v1/detect", &Api::DetectObjects);
  AddCall(context, router, "/v1/features", &Api::ExtractFeatures);
}

}  // namespace longview::server
