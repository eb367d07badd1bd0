// The relative bias tables of a checkpoint: which row query and key of a chunk, window or map read,
// by the formulas that the original code stores as relative_position_index.
#pragma once

#include <cstdint>

#include "models/vil/config.h"

namespace longview::models {

struct StoredBiasIndex {
  int64_t entries = 0;  // Rows of the learned table.
  int64_t queries = 0;
  int64_t keys = 0;

  int64_t query_cols = 1;  // Columns of the square of row-major queries.
  int64_t key_cols = 1;    // Columns of a square of row-major keys.
  // Keys of one square: all keys, or one of the nine chunks around a query's.
  int64_t key_square = 1;
  int64_t first_key =
      0;  // First key of a window or the first chunk, on either axis, from the query square.
  int64_t row_shift = 0;  // Makes the smallest row offset 0.
  int64_t column_shift = 0;
  int64_t row_factor = 1;

  // REQUIRES: 0 <= query < queries, 0 <= key < keys.
  int64_t At(int64_t query, int64_t key) const;
};

// REQUIRES: stage.relative_bias().
StoredBiasIndex StoredBias(const VilStage& stage);

}  // namespace longview::models
