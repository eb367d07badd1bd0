// The best of many places, in bounded memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace longview::client {

struct Place {
  float score = 0;
  std::string path;
  int first_line = 0, last_line = 0;  // From 1, both included.
  std::string text;
};

// Not thread-safe.
class BestPlaces {
 public:
  explicit BestPlaces(size_t most) : most_(most) {}

  // Whether a place of this score may be kept; saves making one that is not.
  bool MayKeep(float score) const { return heap_.size() < most_ || score >= heap_.front().score; }
  void Add(Place place);

  // Best first; equal scores by path and line, whatever order they came in. Leaves nothing behind.
  std::vector<Place> Take();

 private:
  size_t most_;
  std::vector<Place> heap_;  // The worst at its front.
};

}  // namespace longview::client
