// Tokens of several sequences over a stack: one pass over the layers, or two where a piece of
// prefill begins inside a block of the cache. It then goes up to the block's end in a pass of its
// own; the cut lies at an absolute position, so that it is the same however a text is fed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "models/generation/decoder.h"
#include "models/stack/pass.h"
#include "models/stack/sequence.h"

namespace longview::models {

// Used by the executor's thread. Throws what StackPass throws.
class StackStep {
 public:
  // Borrowed arguments outlive the step, the feeds' tokens included; feeds without tokens are left
  // alone. `times` may be null.
  StackStep(const StackContext& context, ScratchKeeper& scratch, std::span<const DecoderFeed> feeds,
            EncoderTimes* times);

  // The next layer; sets whether work is left. Not OK: no memory; the sequences must be destroyed.
  absl::Status Advance(bool* more);
  // It leaves before the next pass: its sequence is not read on.
  void Drop(int feed) { feeds_[static_cast<size_t>(feed)].dropped = true; }
  std::span<const float> Logits(int feed) const { return feeds_[static_cast<size_t>(feed)].logits; }

 private:
  struct Feed {
    DecoderFeed feed;
    int64_t read = 0;  // Tokens already given to a pass.
    bool dropped = false;
    std::vector<float> logits;
    int64_t left() const { return dropped ? 0 : static_cast<int64_t>(feed.tokens.size()) - read; }
  };

  int64_t Wanted(const Feed& feed) const;
  // The next run of a feed with tokens left.
  StackRun NextRun(Feed& feed);

  const StackContext& context_;
  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  std::vector<Feed> feeds_;
  std::optional<StackPass> pass_;
};

}  // namespace longview::models
