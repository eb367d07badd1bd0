// Multi-scale positions multiplied out at load (Lee et al. 2023, section 3, MS-VIPE): they are
// added to the inputs of queries and keys only, so (x + P) W = x W + P W, and P W lies in tables.
// Pure functions, for loading: they compute on all threads.
#pragma once

#include <cstdint>
#include <vector>

#include "models/cst/config.h"

namespace longview::models {

// Terms added to a projection's query, key and value, [entries, 3D]: its biases and, in queries
// and keys, the projected position of place i of a slice, or of slice i.
struct CstBias {
  std::vector<float> values;
  int64_t width = 0;  // 3D

  int64_t entries() const { return static_cast<int64_t>(values.size()) / width; }
  // Row i; rows past the end are the last one. One row serves all where positions add nothing.
  const float* Row(int64_t i) const;
};

// One scale's projections as stored.
struct CstProjections {
  int64_t width = 0;              // D
  std::vector<float> query, key;  // [D, D]; empty without multi-scale positions.
  std::vector<float> bias;        // [3D]
};

// Biases of place j of a slice, j < L. `table` is P_l: [L_ext, D], tiled [L, D].
CstBias TokenBias(const CstConfig& config, const CstProjections& projections,
                  const std::vector<float>& table);

// Biases of slice s, s < S_max. `table` is P_g. With shifted_before the position of its query is
// that of slice s + 1.
CstBias SliceBias(const CstConfig& config, const CstProjections& projections,
                  const std::vector<float>& table);

// T_k = P_l W_k^T [L_ext, D], without bias.
std::vector<float> KeyRows(const CstProjections& projections, const std::vector<float>& table);

// Keys and values of zero tokens at the e places left of the sequence and the e places right of it,
// [2e, D]; one row where all are alike. From the tokens' biases.
std::vector<float> BoundaryKeys(const CstConfig& config, const CstBias& tokens);
std::vector<float> BoundaryValues(const CstConfig& config, const CstBias& tokens);
// How many: one where all are alike, none without a zero boundary.
int64_t BoundaryRows(const CstConfig& config);

}  // namespace longview::models
