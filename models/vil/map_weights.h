// Weights that belong to places of a feature map, made ready for one map size: interpolated where
// the map is not the one they were built for, biases expanded as a plan's bias tables say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "models/vil/config.h"
#include "models/vil/weights.h"

namespace longview::models {

struct VilMapWeights {
  std::vector<float> row_positions;     // [map rows, d / 2]; empty without absolute positions.
  std::vector<float> column_positions;  // [map columns, d / 2]
  // By block: [heads, entries] of biases between local tokens; empty without.
  std::vector<std::vector<float>> tables;

  size_t bytes() const;
};

// `first_positions`: maps smaller than the positions take the first of them. `bias_rows`: the row
// of the learned table, for this map size, of every entry.
VilMapWeights MakeVilMapWeights(const VilStage& stage, const VilStageWeights& weights,
                                ImageSize map, bool first_positions,
                                std::span<const int32_t> bias_rows);

// Bilinear as the original loaders do it: half-pixel centres, two taps an axis, no antialiasing,
// borders clamped. Exact copies where a side stays.
// [from.height, from.width] planes, `planes` of them.
std::vector<float> ResizePlanes(std::span<const float> values, int64_t planes, ImageSize from,
                                ImageSize to);
// [from, channels] to [to, channels].
std::vector<float> ResizeRows(std::span<const float> values, int from, int to, int64_t channels);

// The map weights used last, up to a number of bytes. Not thread-safe. What it hands out stays
// valid after it is thrown out.
class VilMapCache {
 public:
  using Entry = std::shared_ptr<const VilMapWeights>;

  explicit VilMapCache(size_t most_bytes = size_t{96} << 20) : most_bytes_(most_bytes) {}

  // Null if it is not there.
  Entry Find(size_t stage, ImageSize map);
  // Keeps it unless it is larger than the cache.
  Entry Add(size_t stage, ImageSize map, VilMapWeights weights);

  size_t bytes() const { return bytes_; }

 private:
  struct Kept {
    size_t stage;
    ImageSize map;
    Entry weights;
  };

  const size_t most_bytes_;
  size_t bytes_ = 0;
  std::list<Kept> kept_;  // The last used first.
};

}  // namespace longview::models
