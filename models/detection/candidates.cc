#include "models/detection/candidates.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/vision/nms.h"

namespace longview::models {
namespace {

bool Better(const TopLogits::Entry& a, const TopLogits::Entry& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.index < b.index;
}

}  // namespace

void TopLogits::Offer(const float* values, int64_t count, int64_t first) {
  for (int64_t i = 0; i < count; ++i) {
    if (!(values[i] > floor_)) continue;
    entries_.push_back({values[i], first + i});
    if (entries_.size() >= 4 * limit_ + 1024) Cut();
  }
}

// Offers come in the order of their indices, so what equals the lowest of a full set later cannot
// enter it.
void TopLogits::Cut() {
  if (entries_.size() <= limit_) return;
  const auto last = entries_.begin() + static_cast<ptrdiff_t>(limit_) - 1;
  std::nth_element(entries_.begin(), last, entries_.end(), Better);
  floor_ = std::max(floor_, last->logit);
  entries_.resize(limit_);
}

std::vector<TopLogits::Entry> TopLogits::Take() {
  Cut();
  std::sort(entries_.begin(), entries_.end(), Better);
  return std::move(entries_);
}

std::vector<ScoredBox> KeepBest(std::vector<ScoredBox> boxes, float overlap, size_t limit) {
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const ScoredBox& a, const ScoredBox& b) { return a.score > b.score; });
  std::map<int, std::vector<int32_t>> groups;
  for (size_t i = 0; i < boxes.size(); ++i) {
    groups[boxes[i].group].push_back(static_cast<int32_t>(i));
  }
  std::vector<int32_t> stay;
  std::vector<Box> group_boxes;
  std::vector<int32_t> kept;
  std::vector<float> workspace;
  for (const auto& [group, members] : groups) {
    group_boxes.clear();
    for (const int32_t i : members) group_boxes.push_back(boxes[i].box);
    kept.resize(members.size());
    workspace.resize(kernels::SuppressionFloats(members.size()));
    const size_t count = kernels::SuppressOverlaps(group_boxes, overlap, kept, workspace);
    for (size_t i = 0; i < count; ++i) stay.push_back(members[kept[i]]);
  }
  std::sort(stay.begin(), stay.end());
  if (stay.size() > limit) stay.resize(limit);
  std::vector<ScoredBox> out;
  for (const int32_t i : stay) out.push_back(boxes[i]);
  return out;
}

}  // namespace longview::models
