// Choosing among scored boxes: the best of a level while its scores are computed, and the ones
// that survive suppression. Equal scores keep the order in which they came, so results never
// depend on threads or on who shares a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/vision/box.h"

namespace longview::models {

using kernels::Box;

// The `limit` highest logits of a stream; of equal ones those of lower index. Not thread-safe.
class TopLogits {
 public:
  struct Entry {
    float logit = 0;
    int64_t index = 0;
  };

  // Only logits above `floor` count.
  TopLogits(size_t limit, float floor) : limit_(limit), floor_(floor) {}

  // Offers values[i] under index first + i. Not-a-numbers are left out.
  void Offer(const float* values, int64_t count, int64_t first);

  // Best first.
  std::vector<Entry> Take();

 private:
  void Cut();

  size_t limit_;
  float floor_;
  std::vector<Entry> entries_;
};

struct ScoredBox {
  Box box;
  float score = 0;
  int group = 0;   // Boxes suppress each other within a group: a class or a level.
  int source = 0;  // Whatever the caller counts by.
};

// Greedy suppression per group (kernels/vision/nms.h) at `overlap`; the best `limit`, best first.
std::vector<ScoredBox> KeepBest(std::vector<ScoredBox> boxes, float overlap, size_t limit);

}  // namespace longview::models
