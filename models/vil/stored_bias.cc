#include "models/vil/stored_bias.h"

namespace longview::models {

int64_t StoredBiasIndex::At(int64_t query, int64_t key) const {
  // Nine chunks lie three to a row; a window or a map is one run.
  const int64_t run = key / key_square, place = key % key_square;
  const int64_t key_x = first_key + run / 3 * key_cols + place / key_cols;
  const int64_t key_y = first_key + run % 3 * key_cols + place % key_cols;
  const int64_t u = query / query_cols - key_x + row_shift;
  const int64_t v = query % query_cols - key_y + column_shift;
  return entries == 1 ? 0 : u * row_factor + v;
}

StoredBiasIndex StoredBias(const VilStage& stage) {
  const int64_t w = stage.features;
  StoredBiasIndex index;
  if (stage.attention == VilAttention::kFull) {
    const int64_t rows = stage.map.height, cols = stage.map.width;
    index.entries = (2 * rows - 1) * (2 * cols - 1);
    index.queries = index.keys = index.key_square = rows * cols;
    index.query_cols = index.key_cols = cols;
    index.row_shift = rows - 1;
    index.column_shift = cols - 1;
    index.row_factor = 2 * cols - 1;
    return index;
  }
  index.queries = w * w;
  index.query_cols = w;
  if (stage.attention == VilAttention::kChunks) {
    index.entries = (4 * w - 1) * (4 * w - 1);
    index.keys = 9 * w * w;
    index.key_square = w * w;
    index.key_cols = w;
    index.first_key = -w;
    index.row_shift = index.column_shift = 2 * w - 1;
    index.row_factor = 4 * w - 1;
    return index;
  }
  const int64_t half = w / 2, side = w + 2 * half;
  index.entries = 2 * (w + half - 1) * (side + 1) + 1;
  index.keys = index.key_square = side * side;
  index.key_cols = side;
  index.first_key = -half;
  index.row_shift = index.column_shift = half + w - 1;
  index.row_factor = side;
  return index;
}

}  // namespace longview::models
