// POST /v2/models/{m}[/versions/{v}]/infer
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/body_error.h"
#include "server/http/context.h"
#include "server/http/v2/infer_request.h"
#include "server/http/v2/infer_response.h"

namespace longview::server {
namespace {

constexpr char kHeaderLength[] = "Inference-Header-Content-Length";

absl::StatusOr<ParsedInference> Parse(const HttpRequest& request) {
  const std::string_view body = request.body;
  const std::string_view given = request.Header(kHeaderLength);
  if (given.empty()) return ParseInference(body, "");
  size_t length = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), length);
  if (error != std::errc() || end != given.data() + given.size() || length > body.size()) {
    return FieldError(kHeaderLength, absl::StrCat("is ", Quoted(given), ", expected 0 to ",
                                                  body.size(), ", the body's length"));
  }
  return ParseInference(body.substr(0, length), body.substr(length));
}

void Infer(HttpContext& context, const ExchangePtr& exchange, const PathParameters& p) {
  absl::StatusOr<ParsedInference> parsed = Parse(exchange->request());
  if (!parsed.ok()) return Refuse(context, exchange, parsed.status());
  exchange->mutable_request().body = {};
  parsed->request.set_model_name(p[0]);
  if (p.size() > 1) parsed->request.set_model_version(p[1]);
  const Api::Pending pending = context.api.Infer(
      exchange->info(), parsed->request,
      [&context, exchange,
       forms = std::move(parsed->forms)](absl::StatusOr<inference::ModelInferResponse> response) {
        if (!response.ok()) return exchange->Fail(response.status());
        absl::StatusOr<HttpResponse> http = MakeInferResponse(*response, forms);
        if (!http.ok()) return exchange->Fail(http.status());
        if (absl::Status status = CheckAnswerSize(context, http->body); !status.ok()) {
          return exchange->Fail(status);
        }
        exchange->Respond(*std::move(http));
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
