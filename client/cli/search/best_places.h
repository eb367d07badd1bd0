// The best of many places, in bounded memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/search/chunks.h"

namespace longview::client {

struct Place {
  double score = 0;
  std::string path;
  Chunk chunk;
  size_t file = 0;  // Index among those that are searched.
  // The parts of the score.
  std::optional<double> bm25 = std::nullopt, cosine = std::nullopt;
};

// Not thread-safe.
class BestPlaces {
 public:
  explicit BestPlaces(size_t most) : most_(most) {}

  // Whether a place of this score may be kept; saves making one that is not.
  bool MayKeep(double score) const { return heap_.size() < most_ || score >= heap_.front().score; }
  void Add(Place place);

  // Best first; equal scores by path and line, whatever order they came in. Leaves nothing behind.
  std::vector<Place> Take();

 private:
  size_t most_;
  std::vector<Place> heap_;  // The worst at its front.
};

}  // namespace longview::client
