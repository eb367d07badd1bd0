// Weights that belong to places of a feature map, made ready for one map size: interpolated where
// the map is not the one they were built for, biases expanded as a plan's bias tables say.
#pragma once

#include <cstddef>
#include <cstdint>
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
};

size_t BytesOf(const VilMapWeights& weights);

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

}  // namespace longview::models
