#include "server/api/infer/scores.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace longview::server {
namespace {

size_t RowWidth(const models::HostTensor& scores) {
  return scores.shape.empty() ? 0 : static_cast<size_t>(scores.shape.back());
}

void Softmax(std::span<float> row) {
  const float highest = *std::max_element(row.begin(), row.end());
  float sum = 0;
  for (float& score : row) sum += score = std::exp(score - highest);
  for (float& score : row) score /= sum;
}

}  // namespace

void ToProbabilities(models::HostTensor& scores, bool independent) {
  const std::span<float> all(reinterpret_cast<float*>(scores.data.data()),
                             scores.data.size() / sizeof(float));
  if (independent) {
    for (float& score : all) score = 1.0f / (1.0f + std::exp(-score));
    return;
  }
  const size_t width = RowWidth(scores);
  for (size_t i = 0; width > 0 && i < all.size(); i += width) Softmax(all.subspan(i, width));
}

std::vector<size_t> HighestPerRow(const models::HostTensor& scores) {
  const std::span<const float> all = scores.floats();
  const size_t width = RowWidth(scores);
  std::vector<size_t> highest;
  for (size_t i = 0; width > 0 && i < all.size(); i += width) {
    const auto row = all.subspan(i, width);
    highest.push_back(std::max_element(row.begin(), row.end()) - row.begin());
  }
  return highest;
}

}  // namespace longview::server
