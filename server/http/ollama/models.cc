// GET /api/tags and /api/version, in Ollama's shape.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/http/context.h"
#include "server/http/ollama/embed.h"

namespace longview::server {
namespace {

using nlohmann::json;

// "138M", "1.5B".
std::string ParameterSize(double parameters) {
  constexpr double kMillion = 1e6, kBillion = 1e9;
  if (parameters >= kBillion) return absl::StrFormat("%.1fB", parameters / kBillion);
  return absl::StrFormat("%.0fM", parameters / kMillion);
}

// Our models have neither files of one format nor digests.
json Tag(const longview::v1::Model& model, absl::Time started) {
  const std::string since = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", started, absl::UTCTimeZone());
  return {{"name", model.name()},
          {"model", model.name()},
          {"modified_at", since},
          {"size", static_cast<int64_t>(model.memory_bytes())},
          {"digest", ""},
          {"details",
           {{"parent_model", ""},
            {"format", "safetensors"},
            {"family", model.family()},
            {"families", json::array({model.family()})},
            {"parameter_size", ParameterSize(model.parameters())},
            {"quantization_level", model.dtype()}}}};
}

absl::StatusOr<HttpResponse> Tags(const HttpContext& context) {
  ASSIGN_OR_RETURN(const auto models, context.api.ListModels());
  json tags = json::array();
  for (const longview::v1::Model& model : models.models()) {
    if (model.state() == "READY") tags.push_back(Tag(model, context.started));
  }
  return JsonResponse(json{{"models", std::move(tags)}}.dump());
}

}  // namespace

void AddOllama(HttpContext& context, Router& router) {
  AddOllamaEmbed(context, router);
  router.Add(Verb::kGet, "/api/tags",
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               return Tags(context);
             }));
  router.Add(Verb::kGet, "/api/version",
             Immediate(context, [&context](const HttpRequest&, const PathParameters&) {
               return JsonResponse(json{{"version", context.version}}.dump());
             }));
}

}  // namespace longview::server
