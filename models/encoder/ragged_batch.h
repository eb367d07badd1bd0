// The sequences of a batch, side by side in one [rows, H] tensor, and those that leave it.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/encoder/sequence.h"

namespace longview::models {

class RaggedBatch {
 public:
  using Sequences = std::span<const EncoderSequence* const>;

  // Borrows the sequences.
  explicit RaggedBatch(Sequences sequences);

  // Sequences still there, in the order given.
  Sequences sequences() const { return sequences_; }
  int size() const { return static_cast<int>(sequences_.size()); }
  std::span<const int32_t> offsets() const { return offsets_; }  // Rows; one entry more.
  std::span<const uint8_t> roles() const { return roles_; }      // Per row.
  int64_t rows() const { return offsets_.back(); }

  // Sequence i, as given, leaves at the next Leave.
  void Drop(int i);
  bool drops_pending() const { return drops_pending_; }

  // Index of sequence i, as given, among those still there. REQUIRES: not dropped.
  int PlaceOf(int i) const;

  // Closes the gaps: move(from, to) for every sequence that stays, in ascending order, with the
  // first row and index it had and gets. Rows only move to the front.
  struct Place {
    int64_t row;
    int index;
  };
  template <typename Move>
  void Leave(Move&& move) {
    drops_pending_ = false;
    std::vector<const EncoderSequence*> kept;
    std::vector<int> members;
    int64_t row = 0;
    for (int s = 0; s < size(); ++s) {
      if (dropped_[members_[s]]) continue;
      move(Place{offsets_[s], s}, Place{row, static_cast<int>(kept.size())},
           sequences_[s]->tokens());
      kept.push_back(sequences_[s]);
      members.push_back(members_[s]);
      row += sequences_[s]->tokens();
    }
    sequences_ = std::move(kept);
    members_ = std::move(members);
    LayOut();
  }

 private:
  void LayOut();

  std::vector<const EncoderSequence*> sequences_;
  std::vector<int> members_;   // Index of each sequence as given.
  std::vector<bool> dropped_;  // By index as given.
  bool drops_pending_ = false;
  std::vector<int32_t> offsets_;
  std::vector<uint8_t> roles_;
};

}  // namespace longview::models
