// A step of sequences over kernels/cache: what each is fed, cut into runs that the cache takes, run
// by passes over all layers. One pass, or several where a chunk of prefill has to be cut: prefill
// that begins inside a block of the cache goes up to the block's end in a pass of its own. The cut
// lies at an absolute position, so that it is the same however a text is fed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "models/generation/cached_sequence.h"
#include "models/generation/decoder.h"

namespace longview::models {

// Tokens one sequence reads in a pass.
struct TokenRun {
  kernels::CacheStep::Group group = kernels::CacheStep::kPrefill;
  CachedSequence* sequence = nullptr;
  std::span<const int32_t> ids;
  int64_t start = 0;        // Position of the first.
  int64_t wanted = 0;       // Of the last so many rows logits are wanted,
  float* logits = nullptr;  // here: [wanted, V].
};

// Used by the executor's thread. May throw what LibTorch and the allocator throw.
class TokenPass {
 public:
  virtual ~TokenPass() = default;
  // Gives the sequences their memory. RESOURCE_EXHAUSTED where it was not reserved; the sequences
  // must then be destroyed.
  virtual absl::Status Begin() = 0;
  // The next layer; returns whether layers are left. After the last one the logits are written.
  virtual bool Advance() = 0;
};

// Used by the executor's thread.
class PassStep final : public DecoderStep {
 public:
  using MakePass = std::function<std::unique_ptr<TokenPass>(std::vector<TokenRun> runs)>;

  // Every feed's sequence is a CachedSequence. The feeds' tokens are borrowed. `family` begins
  // messages.
  PassStep(std::string family, int vocab, std::span<const DecoderFeed> feeds, MakePass make);

  bool Advance() override;
  // No logits are computed for it from the next pass on.
  void Drop(int feed) override { feeds_[static_cast<size_t>(feed)].dropped = true; }
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
  TokenRun NextRun(Feed& feed);
  absl::Status BeginPass();
  bool AdvancePass();

  const std::string family_;
  const int vocab_;
  const MakePass make_;
  std::vector<Feed> feeds_;
  std::unique_ptr<TokenPass> pass_;
  absl::Status status_;
};

}  // namespace longview::models
