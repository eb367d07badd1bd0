// POST /v2/models/{m}[/versions/{v}]/infer
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/http/context.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/writer.h"
#include "server/http/message.h"
#include "server/http/v2/infer_request.h"
#include "server/http/v2/tensor_json.h"

namespace longview::server {
namespace {

using inference::InferParameter;

void AppendMember(std::string_view name, std::string* out) {
  if (out->back() != '{') out->push_back(',');
  AppendJsonString(name, out);
  out->push_back(':');
}

void AppendParameter(const InferParameter& parameter, std::string* out) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return AppendJson(parameter.bool_param(), out);
    case InferParameter::kInt64Param:
      return AppendJson(int64_t{parameter.int64_param()}, out);
    case InferParameter::kUint64Param:
      return AppendJson(uint64_t{parameter.uint64_param()}, out);
    case InferParameter::kDoubleParam:
      return AppendJson(parameter.double_param(), out);
    case InferParameter::kStringParam:
      return AppendJsonString(parameter.string_param(), out);
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      out->append("null");
  }
}

template <typename Map>
void AppendParameters(const Map& parameters, std::string* out) {
  for (const auto& [name, value] : parameters) {
    AppendMember(name, out);
    AppendParameter(value, out);
  }
}

// Microseconds among the answer's parameters, as seconds.
double Seconds(const inference::ModelInferResponse& response, const char* name) {
  const auto it = response.parameters().find(name);
  if (it == response.parameters().end()) return 0;
  return static_cast<double>(it->second.int64_param()) * 1e-6;
}

absl::Status AppendOutput(const inference::ModelInferResponse::InferOutputTensor& output,
                          const std::string& raw, bool binary, size_t max_bytes, std::string* out) {
  out->push_back('{');
  AppendMember("name", out);
  AppendJsonString(output.name(), out);
  AppendMember("datatype", out);
  AppendJsonString(output.datatype(), out);
  AppendMember("shape", out);
  out->push_back('[');
  for (int i = 0; i < output.shape_size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendJson(int64_t{output.shape(i)}, out);
  }
  out->push_back(']');
  if (binary || !output.parameters().empty()) {
    AppendMember("parameters", out);
    out->push_back('{');
    AppendParameters(output.parameters(), out);
    if (binary) {
      AppendMember("binary_data_size", out);
      AppendJson(uint64_t{raw.size()}, out);
    }
    out->push_back('}');
  }
  if (!binary) {
    AppendMember("data", out);
    RETURN_IF_ERROR(AppendTensor(raw, output.datatype(), max_bytes, out));
  }
  out->push_back('}');
  return absl::OkStatus();
}

// JSON, followed by the bytes of the outputs `forms` asks for in that form. Only if there are
// such does the answer have Inference-Header-Content-Length. An answer of more than `max_bytes` is
// INVALID_ARGUMENT, found while it is written. REQUIRES: `response` holds its outputs in raw form
// (INTERNAL otherwise).
absl::StatusOr<HttpResponse> MakeInferResponse(const inference::ModelInferResponse& response,
                                               const OutputForms& forms, size_t max_bytes) {
  if (response.raw_output_contents_size() != response.outputs_size()) {
    return absl::InternalError("an inference answer without raw outputs");
  }
  HttpResponse http;
  std::string& body = http.body;
  body = "{";
  AppendMember("model_name", &body);
  AppendJsonString(response.model_name(), &body);
  AppendMember("model_version", &body);
  AppendJsonString(response.model_version(), &body);
  if (!response.id().empty()) {
    AppendMember("id", &body);
    AppendJsonString(response.id(), &body);
  }
  AppendMember("parameters", &body);
  body.push_back('{');
  AppendParameters(response.parameters(), &body);
  body.push_back('}');
  AppendMember("outputs", &body);
  body.push_back('[');
  bool any_binary = false;
  for (int i = 0; i < response.outputs_size(); ++i) {
    if (i > 0) body.push_back(',');
    const bool binary = forms.IsBinary(response.outputs(i).name());
    any_binary |= binary;
    RETURN_IF_ERROR(AppendOutput(response.outputs(i), response.raw_output_contents(i), binary,
                                 max_bytes, &body));
  }
  body += "]}";
  size_t bytes = body.size();
  for (int i = 0; i < response.outputs_size(); ++i) {
    const bool binary = forms.IsBinary(response.outputs(i).name());
    if (binary) bytes += response.raw_output_contents(i).size();
  }
  if (bytes > max_bytes) return AnswerTooLarge(bytes, max_bytes);
  if (any_binary) {
    body.reserve(bytes);
    http.content_type = "application/octet-stream";
    http.headers.emplace_back("Inference-Header-Content-Length", absl::StrCat(body.size()));
    for (int i = 0; i < response.outputs_size(); ++i) {
      if (forms.IsBinary(response.outputs(i).name())) body += response.raw_output_contents(i);
    }
  }
  AddServerTiming(Seconds(response, "queue_us"), Seconds(response, "compute_us"), &http);
  return http;
}

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
  ASSIGN_OR_RETURN(nlohmann::json head,
                   ParseJson(std::string_view(body).substr(0, length), max_json_bytes));
  if (length == body.size()) body = {};  // Before its values are copied once more.
  const std::string_view rest = body;
  return ReadInference(std::move(head), rest.substr(std::min(length, rest.size())));
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
