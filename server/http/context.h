// The collaborators shared by all routes.
#pragma once

#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/api.h"
#include "server/http/body_workers.h"
#include "server/http/exchange.h"
#include "server/http/router.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"

namespace longview::server {

// Thread-safe; outlives every exchange.
struct HttpContext {
  Api& api;
  const Metrics& metrics;
  std::string version;
  std::string commit;
  absl::Time started;
  BodyWorkers& workers;
  ByteBudget* bytes;  // Null: not counted.
  Log* log;           // Null: nobody reads it.
  bool refuse_token_ids;
  std::string search_folder;  // Empty: none.
};

HttpResponse JsonResponse(std::string body);

// The `Server-Timing` field of an answered inference.
void AddServerTiming(double queue_seconds, double compute_seconds, HttpResponse* response);

// For answers that Api does not record by itself: one metric sample, one log line, then the
// answer or the error.
void Answer(const HttpContext& context, const ExchangePtr& exchange, HttpResponse response);
void Refuse(const HttpContext& context, const ExchangePtr& exchange, const absl::Status& status);

// INVALID_ARGUMENT if the body is longer than messages may be.
absl::Status CheckAnswerSize(const HttpContext& context, const std::string& body);

// Refuses one request, to be repeated: memory could not be had.
absl::Status NoMemoryError();

// About how many bytes of JSON become of one of a tensor.
inline constexpr size_t kJsonGrowth = 3;

// Runs `work`, which reads or writes a body of about `bytes` for the exchange: here if it is short,
// else on a worker. If there is no memory for it the exchange fails and all else goes on.
template <typename Work>
void RunSized(HttpContext& context, ExchangePtr exchange, size_t bytes, Work work) {
  auto guarded = [exchange = std::move(exchange), work = std::move(work)]() mutable {
    try {
      work();
    } catch (const std::bad_alloc&) {
      exchange->Fail(NoMemoryError());
    } catch (const std::length_error&) {
      exchange->Fail(NoMemoryError());
    }
  };
  if (bytes <= BodyWorkers::kShort) return guarded();
  context.workers.Run(bytes, std::move(guarded));
}

// Counts `bytes` for the exchange's answer.
absl::Status Hold(HttpContext& context, const ExchangePtr& exchange, size_t bytes);

// RunSized for an answer of about `bytes`, counted among the client's from here on until it is out;
// 429 if that is more than the client may have in memory.
template <typename Write>
void WriteSized(HttpContext& context, const ExchangePtr& exchange, size_t bytes, Write write) {
  if (bytes > BodyWorkers::kShort) {
    if (absl::Status held = Hold(context, exchange, bytes); !held.ok()) {
      return exchange->Fail(held);
    }
  }
  RunSized(context, exchange, bytes, std::move(write));
}

// A route that answers at once.
HttpHandler Immediate(
    HttpContext& context,
    std::function<absl::StatusOr<HttpResponse>(const HttpRequest&, const PathParameters&)> answer);

// The groups of routes; each function adds its own.
void AddProbes(HttpContext& context, Router& router);  // /livez, /readyz, /metrics
void AddOperations(HttpContext& context, Router& router);
void AddConsole(HttpContext& context, Router& router);
void AddModels(HttpContext& context, Router& router);       // /v2: metadata and repository.
void AddInference(HttpContext& context, Router& router);    // /v2/models/{m}/infer
void AddTyped(HttpContext& context, Router& router);        // /v1/classify and its kin.
void AddOpenAi(HttpContext& context, Router& router);       // /v1/models
void AddCompletions(HttpContext& context, Router& router);  // /v1/completions
void AddEmbeddings(HttpContext& context, Router& router);   // /v1/embeddings
void AddRerank(HttpContext& context, Router& router);       // /v1/rerank, /v2/rerank
void AddScore(HttpContext& context, Router& router);        // /score
void AddCohere(HttpContext& context, Router& router);       // /v1/embed, /v2/embed
void AddOllama(HttpContext& context, Router& router);       // /api
void AddTei(HttpContext& context, Router& router);          // /embed, /rerank, /predict
void AddSearch(HttpContext& context, Router& router);       // /v1/search
void AddTokens(HttpContext& context, Router& router);       // /tokenize, /detokenize

}  // namespace longview::server
