#include "kernels/span/chunk_map.h"

#include <utility>

namespace longview::kernels {

std::vector<int32_t> ChunkMap::Order() const {
  std::vector<int32_t> order(static_cast<size_t>(rows_) * cols_);
  for (int32_t x = 0; x < rows_; ++x) {
    for (int32_t y = 0; y < cols_; ++y) order[Rank(x, y)] = x * cols_ + y;
  }
  return order;
}

int32_t BiasTables::Add(std::vector<int32_t> index) {
  const auto [at, added] =
      first_.try_emplace(std::move(index), static_cast<int32_t>(entries_.size()));
  if (added) entries_.insert(entries_.end(), at->first.begin(), at->first.end());
  return at->second;
}

}  // namespace longview::kernels
