#include "server/http/context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"

namespace longview::server {

HttpResponse JsonResponse(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

void AddServerTiming(double queue_seconds, double compute_seconds, HttpResponse* response) {
  response->headers.emplace_back(
      "Server-Timing", absl::StrFormat("queue;dur=%.3f, compute;dur=%.3f", queue_seconds * 1e3,
                                       compute_seconds * 1e3));
}

void Answer(const HttpContext& context, const ExchangePtr& exchange, HttpResponse response) {
  (void)context.api.Record(exchange->info(), "", "", absl::OkStatus());
  exchange->Respond(std::move(response));
}

void Refuse(const HttpContext& context, const ExchangePtr& exchange, const absl::Status& status) {
  exchange->Fail(context.api.Record(exchange->info(), "", "", status));
}

absl::Status CheckAnswerSize(const HttpContext& context, const std::string& body) {
  const size_t limit = context.api.options().max_message_bytes;
  return body.size() <= limit ? absl::OkStatus() : AnswerTooLarge(body.size(), limit);
}

absl::Status NoMemoryError() {
  return MakeError(absl::StatusCode::kResourceExhausted, "no memory for this request now",
                   {.reason = "MEMORY", .retry_after = absl::Seconds(1), .param = ""});
}

absl::Status Hold(HttpContext& context, const ExchangePtr& exchange, size_t bytes) {
  if (context.bytes == nullptr) return absl::OkStatus();
  auto reservation = context.bytes->TryReserve(exchange->info().client, bytes);
  if (reservation.ok()) exchange->HoldAnswer(*std::move(reservation));
  return reservation.status();
}

HttpHandler Immediate(
    HttpContext& context,
    std::function<absl::StatusOr<HttpResponse>(const HttpRequest&, const PathParameters&)> answer) {
  return [&context, answer = std::move(answer)](const ExchangePtr& exchange,
                                                const PathParameters& parameters) {
    absl::StatusOr<HttpResponse> response = answer(exchange->request(), parameters);
    if (response.ok()) {
      Answer(context, exchange, *std::move(response));
    } else {
      Refuse(context, exchange, response.status());
    }
  };
}

}  // namespace longview::server
