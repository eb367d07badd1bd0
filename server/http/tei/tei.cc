#include "server/http/tei/tei.h"

namespace longview::server {

void AddTei(HttpContext& context, Router& router) {
  const auto add = [&](std::string_view path, void (*run)(HttpContext&, const ExchangePtr&)) {
    router.Add(Verb::kPost, path,
               [&context, run](const ExchangePtr& exchange, const PathParameters&) {
                 run(context, exchange);
               });
  };
  add("/embed", &TeiEmbed);
  add("/predict", &TeiPredict);
  add("/rerank", &TeiRerank);
}

}  // namespace longview::server
