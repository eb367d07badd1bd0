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

// A model's name may have an organisation's in front, with the slash between them as it is.
bool IsModel(std::string_view segment) { return segment == "{m}" || segment == "{id}"; }

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

bool Router::Matches(std::span<const std::string_view> route,
                     std::span<const std::string_view> segments, PathParameters* parameters) {
  if (route.empty() || segments.empty()) return route.empty() && segments.empty();
  const auto rest = [&](size_t taken) {
    return Matches(route.subspan(1), segments.subspan(taken), parameters);
  };
  if (!IsParameter(route[0])) return route[0] == segments[0] && rest(1);
  const size_t before = parameters->size();
  const size_t most = std::min<size_t>(IsModel(route[0]) ? 2 : 1, segments.size());
  for (size_t taken = 1; taken <= most; ++taken) {
    parameters->resize(before);
    std::string whole;
    for (size_t i = 0; i < taken; ++i) {
      const auto value = PercentDecode(segments[i], false);
      if (!value || value->empty()) return false;
      whole += (i > 0 ? "/" : "") + *value;
    }
    parameters->push_back(std::move(whole));
    if (rest(taken)) return true;
  }
  return false;
}

Router::Match Router::Find(std::string_view method, std::string_view path) const {
  if (!path.starts_with('/')) return {};
  const std::vector<std::string_view> segments = Segments(path);
  const Route* best = nullptr;
  PathParameters best_parameters;
  size_t fewest = 0;
  for (const Route& route : routes_) {
    PathParameters parameters;
    if (!Matches(route.segments, segments, &parameters)) continue;
    // Segments that the template does not spell out.
    const size_t taken = segments.size() - route.segments.size() + parameters.size();
    if (!best || taken < fewest) {
      best = &route;
      best_parameters = std::move(parameters);
      fewest = taken;
    }
  }
  if (!best) return {};
  Match match{best->path, best->get ? "GET, HEAD" : "", nullptr, std::move(best_parameters)};
  if (best->post) match.allow += match.allow.empty() ? "POST" : ", POST";
  if (best->get && (method == "GET" || method == "HEAD")) match.handler = &best->get;
  if (best->post && method == "POST") match.handler = &best->post;
  return match;
}

std::string Router::Near(std::string_view path) const {
  constexpr std::string_view kVersion = "/v1";
  const bool has = path.starts_with(kVersion) && path.substr(kVersion.size()).starts_with('/');
  const std::string other =
      has ? std::string(path.substr(kVersion.size())) : std::string(kVersion).append(path);
  return Find("", other).route.empty() ? "" : other;
}

}  // namespace longview::server
