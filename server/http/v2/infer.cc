// POST /v2/models/{m}[/versions/{v}]/infer
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/context.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/v2/infer_request.h"
#include "server/http/v2/infer_response.h"

namespace longview::server {
namespace {

constexpr char kHeaderLength[] = "Inference-Header-Content-Length";

// Takes the request's body.
absl::StatusOr<ParsedInference> Parse(HttpRequest& request, size_t max_json_bytes) {
  std::string body = std::exchange(request.body, {});
  const std::string_view given = request.Header(kHeaderLength);
  size_t length = given.empty() ? body.size() : 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), length);
  const bool bad =
      error != std::errc() || end != given.data() + given.size() || length > body.size();
  if (!given.empty() && bad) {
    return FieldError(kHeaderLength, absl::StrCat("is ", Quoted(given), ", expected 0 to ",
                                                  body.size(), ", the body's length"));
  }
  absl::StatusOr<nlohmann::json> head =
      ParseJson(std::string_view(body).substr(0, length), max_json_bytes);
  if (!head.ok()) return head.status();
  if (length == body.size()) body = {};  // Before its values are copied once more.
  const std::string_view rest = body;
  return ReadInference(*std::move(head), rest.substr(std::min(length, rest.size())));
}

void Infer(HttpContext& context, const ExchangePtr& exchange, const PathParameters& p) {
  const size_t max_bytes = context.api.options().max_message_bytes;
  absl::StatusOr<ParsedInference> parsed = Parse(exchange->mutable_request(), max_bytes);
  if (!parsed.ok()) return Refuse(context, exchange, parsed.status());
  parsed->request.set_model_name(p[0]);
  if (p.size() > 1) parsed->request.set_model_version(p[1]);
  const Api::Pending pending = context.api.Infer(
      exchange->info(), parsed->request,
      [&context, exchange,
       forms = std::move(parsed->forms)](absl::StatusOr<inference::ModelInferResponse> response) {
        if (!response.ok()) return exchange->Fail(response.status());
        const size_t bytes = kJsonGrowth * response->ByteSizeLong();
        WriteSized(context, exchange, bytes,
                   [&context, exchange, forms, response = *std::move(response)] {
                     const size_t limit = context.api.options().max_message_bytes;
                     absl::StatusOr<HttpResponse> http = MakeInferResponse(response, forms, limit);
                     if (!http.ok()) return exchange->Fail(http.status());
                     exchange->Respond(*std::move(http));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace

void AddInference(HttpContext& context, Router& router) {
  for (const std::string_view path :
       {"/v2/models/{m}/infer", "/v2/models/{m}/versions/{v}/infer"}) {
    router.Add(Verb::kPost, path, [&context](const ExchangePtr& exchange, const PathParameters& p) {
      Infer(context, exchange, p);
    });
  }
}

}  // namespace longview::server
