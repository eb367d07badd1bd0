#include "kernels/span/chunk_map.h"

namespace longview::kernels {

std::vector<int32_t> ChunkMap::Order() const {
  std::vector<int32_t> order(static_cast<size_t>(rows_) * cols_);
  for (int32_t x = 0; x < rows_; ++x) {
    for (int32_t y = 0; y < cols_; ++y) order[Rank(x, y)] = x * cols_ + y;
  }
  return order;
}

}  // namespace longview::kernels
