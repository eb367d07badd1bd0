#include "models/encoder/ragged_batch.h"

#include <algorithm>
#include <numeric>

namespace longview::models {

RaggedBatch::RaggedBatch(Sequences sequences)
    : sequences_(sequences.begin(), sequences.end()),
      members_(sequences.size()),
      dropped_(sequences.size()) {
  std::iota(members_.begin(), members_.end(), 0);
  LayOut();
}

void RaggedBatch::LayOut() {
  offsets_ = {0};
  roles_.clear();
  for (const EncoderSequence* sequence : sequences_) {
    offsets_.push_back(offsets_.back() + sequence->tokens());
    roles_.insert(roles_.end(), sequence->roles.begin(), sequence->roles.end());
  }
}

void RaggedBatch::Drop(int i) {
  drops_pending_ = drops_pending_ || !dropped_[i];
  dropped_[i] = true;
}

int RaggedBatch::PlaceOf(int i) const {
  return static_cast<int>(std::find(members_.begin(), members_.end(), i) - members_.begin());
}

}  // namespace longview::models
