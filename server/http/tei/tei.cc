#include "server/http/tei/tei.h"

#include <utility>

namespace longview::server {

void AddTei(HttpContext& context, Router& router) {
  using TeiAnswer = void (*)(HttpContext&, const ExchangePtr&, TeiBody);
  const auto add = [&](std::string_view path, TeiAnswer answer) {
    router.Add(Verb::kPost, path,
               [&context, answer](const ExchangePtr& exchange, const PathParameters&) {
                 absl::StatusOr<TeiBody> body =
                     ParseTei(std::exchange(exchange->mutable_request().body, {}),
                              exchange->request().query, context.api.options().max_message_bytes);
                 if (!body.ok()) return Refuse(context, exchange, body.status());
                 answer(context, exchange, *std::move(body));
               });
  };
  add("/embed", &TeiEmbed);
  add("/predict", &TeiPredict);
  add("/rerank", &TeiRerank);
  add("/similarity", &TeiSimilarity);
}

}  // namespace longview::server
