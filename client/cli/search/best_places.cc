#include "client/cli/search/best_places.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace longview::client {
namespace {

bool Better(const Place& a, const Place& b) {
  if (a.score != b.score) return a.score > b.score;
  return std::tie(a.path, a.chunk.first_line) < std::tie(b.path, b.chunk.first_line);
}

}  // namespace

void BestPlaces::Add(Place place) {
  heap_.push_back(std::move(place));
  std::push_heap(heap_.begin(), heap_.end(), Better);
  if (heap_.size() <= most_) return;
  std::pop_heap(heap_.begin(), heap_.end(), Better);
  heap_.pop_back();
}

std::vector<Place> BestPlaces::Take() {
  std::sort(heap_.begin(), heap_.end(), Better);
  return std::exchange(heap_, {});
}

}  // namespace longview::client
