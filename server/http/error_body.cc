#include "server/http/error_body.h"

#include <string>
#include <utility>

#include "nlohmann/json.hpp"
#include "server/errors.h"
#include "server/status_map_http.h"

namespace longview::server {

ErrorShape ShapeOfPath(std::string_view path) {
  for (const std::string_view tei : {"/embed", "/rerank", "/predict", "/similarity"}) {
    if (path == tei) return ErrorShape::kTei;
  }
  if (path == "/v1/rerank" || path == "/v1/embed") return ErrorShape::kObjectAndMessage;
  if (path == "/v2/rerank" || path == "/v2/embed") return ErrorShape::kStringAndMessage;
  for (const std::string_view root : {"/v2", "/api"}) {
    if (!path.starts_with(root)) continue;
    const std::string_view rest = path.substr(root.size());
    if (rest.empty() || rest.front() == '/') return ErrorShape::kString;
  }
  return ErrorShape::kObject;
}

HttpResponse ErrorResponse(const absl::Status& status, ErrorShape shape,
                           std::string_view request_id) {
  HttpError error = ToHttpError(status);
  if (error.status == 500)
    error.message = std::string("internal error; request id ").append(request_id);
  // Users of OpenAI's clients test these two.
  const bool object = shape == ErrorShape::kObject || shape == ErrorShape::kObjectAndMessage;
  if (object && GetErrorDetail(status).reason == "MODEL_NOT_FOUND") {
    error.type = "invalid_request_error";
    error.code = "model_not_found";
  }
  nlohmann::json body;
  if (shape == ErrorShape::kStringAndMessage || shape == ErrorShape::kObjectAndMessage) {
    body["message"] = error.message;
  }
  if (shape == ErrorShape::kString || shape == ErrorShape::kStringAndMessage) {
    body["error"] = error.message;
  } else if (shape == ErrorShape::kTei) {
    body = {{"error", error.message}, {"error_type", error.type}};
  } else {
    body["error"] = {
        {"message", error.message},
        {"type", error.type},
        {"code", error.code},
        {"param", error.param.empty() ? nlohmann::json() : nlohmann::json(error.param)}};
  }
  HttpResponse response;
  response.status = error.status;
  response.headers = std::move(error.headers);
  response.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

}  // namespace longview::server
