// Finds the handler for a method and a path.
//
// Immutable once built, so thread-safe. Templates name a path's parameters in braces, one
// per segment: "/v2/models/{m}/infer". A model's, {m} or {id}, may also take two, org/name. Their
// text is the `method` label of the metrics.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/exchange.h"

namespace longview::server {

// The decoded segments that stand for "{...}", in order.
using PathParameters = std::vector<std::string>;
using HttpHandler = std::function<void(ExchangePtr, const PathParameters&)>;

enum class Verb { kGet, kPost };

class Router {
 public:
  // `path` is a static string. HEAD is answered by GET's handler.
  void Add(Verb verb, std::string_view path, HttpHandler handler);

  struct Match {
    std::string_view route;                // The template; "" if no path matches.
    std::string allow;                     // For the Allow header: the methods of the path.
    const HttpHandler* handler = nullptr;  // Null: unknown path or wrong method.
    PathParameters parameters;
  };
  // The template that spells out most of the path wins.
  Match Find(std::string_view method, std::string_view path) const;

  // A path with a route that is `path` but for /v1 in front, which one of them has; "" if none is.
  std::string Near(std::string_view path) const;

 private:
  struct Route {
    std::string_view path;
    std::vector<std::string_view> segments;
    HttpHandler get;
    HttpHandler post;
  };
  static bool Matches(std::span<const std::string_view> route,
                      std::span<const std::string_view> segments, PathParameters* parameters);

  std::vector<Route> routes_;
};

}  // namespace longview::server
