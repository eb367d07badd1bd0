// A step of sequences over kernels/cache: what each is fed, cut into runs that the cache takes, run
// by passes over all layers. One pass, or several where a chunk of prefill has to be cut: prefill
// that begins inside a block of the cache goes up to the block's end in a pass of its own, no run
// is longer than kPrefillPart (token_run.h), and a family may set boundaries that no run
// crosses and limits of what a pass takes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/generation/decoder/decoder.h"
#include "models/generation/decoder/token_run.h"

namespace longview::models {

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
  struct Rules {
    std::string family;  // Begins messages.
    int vocab = 0;
    int64_t boundary = 0;     // Multiples of it are crossed by no run; 0: none.
    int64_t pass_tokens = 0;  // Limit of prefill in one pass, at least kPrefillPart; 0: none.
    int pass_runs = 0;  // Limit of a pass's runs of prefill, and of those of decoding; 0: none.
    // Whether passes choose a token by these settings themselves: then it has no row of logits.
    // Null: by none.
    bool (*chooses)(const GenerationSettings& settings) = nullptr;
  };
  using MakePass = std::function<std::unique_ptr<TokenPass>(std::vector<TokenRun> runs)>;

  // Every feed's sequence is a CachedSequence. The feeds' tokens are borrowed; feeds without tokens
  // are left alone.
  PassStep(Rules rules, std::span<const DecoderFeed> feeds, MakePass make);

  bool Advance() override;
  // Removes a feed before the next pass: its sequence is not read on.
  void Drop(int feed) override { feeds_[static_cast<size_t>(feed)].dropped = true; }
  absl::Status status() const override { return status_; }
  std::span<const float> Logits(int feed) const override;
  const ChosenToken* Chosen(int feed) const override;

 private:
  struct Feed {
    DecoderFeed feed;
    int64_t read = 0;  // Tokens already given to a pass.
    bool dropped = false;
    std::unique_ptr<float[]> logits;  // [wanted, V], written by passes.
    // With a sink `logits` are those of one pass, these so many rows.
    int64_t start = 0, rows = 0;
    bool told = true;  // The sink has them.
    std::optional<ChosenToken> chosen;

    int64_t left() const { return dropped ? 0 : static_cast<int64_t>(feed.tokens.size()) - read; }
    int64_t wanted() const;
  };

  // The next tokens of a feed, as the cache takes them.
  struct Cut {
    kernels::CacheStep::Group group;
    int64_t tokens;
  };
  // Room that one pass still has.
  class Room;

  // The next part of a feed with tokens left.
  Cut NextCut(const Feed& feed) const;
  TokenRun NextRun(const Cut& cut, Feed& feed) const;
  // Rows of logits that are in memory at once.
  int64_t RowsOf(const Feed& feed) const;
  void TellSinks();
  bool Chooses(const DecoderFeed& feed) const;
  std::vector<TokenRun> NextRuns();
  bool AdvancePass();

  const Rules rules_;
  const MakePass make_;
  std::vector<Feed> feeds_;
  std::unique_ptr<TokenPass> pass_;
  absl::Status status_;
};

}  // namespace longview::models
