#include "models/vision/staged_batch.h"

#include <algorithm>

namespace longview::models {

StagedBatch::StagedBatch(std::span<const VisionInput> inputs, ScratchKeeper& scratch,
                         EncoderTimes* times)
    : inputs_(inputs.begin(), inputs.end()),
      scratch_(scratch),
      times_(times),
      dropped_(inputs.size()),
      features_(inputs.size()),
      maps_(inputs.size()) {}

// Returns whether an image takes part.
bool StagedBatch::Start() {
  started_ = true;
  std::vector<ImageSize> sizes;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (dropped_[i]) continue;
    members_.push_back(static_cast<int>(i));
    sizes.push_back(inputs_[i].pixels->size);
  }
  if (members_.empty()) return false;
  Plan(sizes);
  Carver measure(nullptr);
  Carve(measure);
  loan_ = std::make_unique<ScratchLoan>(scratch_, measure.used());
  Carver carver(loan_->data());
  Carve(carver);
  return true;
}

// The wanted stage's local tokens as [channels, rows, columns].
void StagedBatch::KeepMaps() {
  for (size_t m = 0; m < members_.size(); ++m) {
    const std::vector<int>& wanted = inputs_[members_[m]].stages;
    if (std::find(wanted.begin(), wanted.end(), static_cast<int>(stage_)) == wanted.end()) continue;
    const Rows rows = RowsOf(static_cast<int>(m));
    const int64_t positions = rows.tokens->count();
    FeatureMap map{static_cast<int>(rows.width), rows.tokens->map,
                   std::vector<float>(rows.width * positions)};
    // A few rows at a time stay in cache while their columns become runs.
    constexpr int64_t kRows = 32;
    for (int64_t first = 0; first < positions; first += kRows) {
      const int64_t end = std::min(first + kRows, positions);
      for (int64_t c = 0; c < rows.width; ++c) {
        for (int64_t i = first; i < end; ++i) {
          const int64_t row = rows.tokens->row0 + rows.tokens->place[i];
          map.values[c * positions + i] = rows.x[row * rows.width + c];
        }
      }
    }
    maps_[members_[m]].push_back(std::move(map));
  }
}

bool StagedBatch::Advance() {
  if (!started_ && !Start()) return false;
  if (members_.empty() || stage_ == Stages()) return false;
  if (block_ == 0) Embed();
  RunBlock();
  if (++block_ < Blocks(stage_)) return true;
  KeepMaps();
  block_ = 0;
  if (stage_ + 1 == Stages()) {
    for (size_t m = 0; m < members_.size(); ++m) {
      features_[members_[m]] = Feature(static_cast<int>(m));
    }
  }
  return ++stage_ < Stages();
}

}  // namespace longview::models
