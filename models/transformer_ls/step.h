// A step of Transformer-LS sequences in flight: one pass over the layers, or several where a chunk
// of prefill has to be cut.
//
// Prefill that begins inside a block of the cache goes up to the block's end in a pass of its own,
// and in kBlocks no pass goes past a block of the schedule. Both cuts lie at absolute positions,
// so that they are the same however a text is fed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "models/generation/decoder.h"
#include "models/transformer_ls/pass.h"

namespace longview::models {

// Used by the executor's thread.
class LsStep final : public DecoderStep {
 public:
  // Borrowed arguments outlive the step, the feeds' tokens included; `times` may be null.
  LsStep(const LsContext& context, ScratchKeeper& scratch, std::span<const DecoderFeed> feeds,
         LsTimes* times);

  bool Advance() override;
  // No logits are computed for it from the next pass on.
  void Drop(int feed) override { feeds_[feed].dropped = true; }
  absl::Status status() const override { return status_; }
  std::span<const float> Logits(int feed) const override;

 private:
  struct Feed {
    DecoderFeed feed;
    int64_t read = 0;  // Tokens already given to a pass.
    bool dropped = false;
    std::vector<float> logits;
  };

  int64_t Wanted(const Feed& feed) const;
  // The next run of a feed with tokens left.
  LsRun NextRun(Feed& feed);
  absl::Status BeginPass();
  bool AdvancePass();

  const LsContext& context_;
  ScratchKeeper& scratch_;
  LsTimes* const times_;
  std::vector<Feed> feeds_;
  std::optional<LsPass> pass_;
  absl::Status status_;
};

}  // namespace longview::models
