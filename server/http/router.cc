#include "server/http/router.h"

#include <algorithm>
#include <utility>

#include "server/http/uri.h"

namespace longview::server {
namespace {

std::vector<std::string_view> Segments(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    path.remove_prefix(1);  // The '/'.
    const size_t end = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return segments;
}

bool IsParameter(std::string_view segment) { return segment.starts_with('{'); }

}  // namespace

void Router::Add(Verb verb, std::string_view path, HttpHandler handler) {
  auto route = std::find_if(routes_.begin(), routes_.end(),
                            [&](const Route& known) { return known.path == path; });
  if (route == routes_.end()) {
    routes_.push_back({path, Segments(path), nullptr, nullptr});
    route = routes_.end() - 1;
  }
  (verb == Verb::kGet ? route->get : route->post) = std::move(handler);
}

bool Router::Matches(const Route& route, const std::vector<std::string_view>& segments,
                     PathParameters* parameters) {
  if (route.segments.size() != segments.size()) return false;
  parameters->clear();
  for (size_t i = 0; i < segments.size(); ++i) {
    if (IsParameter(route.segments[i])) {
      auto value = PercentDecode(segments[i], false);
      if (!value || value->empty()) return false;
      parameters->push_back(*std::move(value));
    } else if (route.segments[i] != segments[i]) {
      return false;
    }
  }
  return true;
}

Router::Match Router::Find(std::string_view method, std::string_view path) const {
  if (!path.starts_with('/')) return {};
  const std::vector<std::string_view> segments = Segments(path);
  const Route* best = nullptr;
  PathParameters best_parameters;
  for (const Route& route : routes_) {
    PathParameters parameters;
    if (!Matches(route, segments, &parameters)) continue;
    if (!best || parameters.size() < best_parameters.size()) {
      best = &route;
      best_parameters = std::move(parameters);
    }
  }
  if (!best) return {};
  Match match{best->path, best->get ? "GET, HEAD" : "", nullptr, std::move(best_parameters)};
  if (best->post) match.allow += match.allow.empty() ? "POST" : ", POST";
  if (best->get && (method == "GET" || method == "HEAD")) match.handler = &best->get;
  if (best->post && method == "POST") match.handler = &best->post;
  return match;
}

}  // namespace longview::server
