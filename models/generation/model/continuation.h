// The continuation of a prompt: chooses tokens from logits, keeps the sequences that read them, and
// makes text of them. Samples and beams are its two forms.
// Belongs to the executor's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "models/generation/decoder/decoder.h"
#include "models/generation/options/settings.h"
#include "models/generation/sampling/logits_processors.h"
#include "models/text/text_codec.h"

namespace longview::models {

// The tools of a continuation. Borrowed; outlives it.
struct ContinuationContext {
  const GenerationSettings* settings = nullptr;
  const LogitsProcessors* processors = nullptr;
  const TextCodec* codec = nullptr;  // Null: no text.
  int vocab = 0;
  bool scores = false;  // Whether sampled sequences have one, too (Piece::score).
};

class Continuation {
 public:
  virtual ~Continuation() = default;

  // The first tokens: from a sequence that has read the prompt and the logits of its last token.
  // Statuses say why nothing can be chosen.
  virtual absl::Status Begin(std::unique_ptr<DecoderSequence> sequence,
                             std::span<const float> logits) = 0;

  virtual bool done() const = 0;
  // Number of sequences that read a token in the next step, and tokens that each has generated.
  virtual int sequences() const = 0;
  virtual int steps() const = 0;
  // The sequences that read a token in the next step, one feed each.
  virtual void AddFeeds(std::vector<DecoderFeed>& feeds) const = 0;
  // The logits of those feeds, in the same order, starting with number `first`.
  virtual absl::Status Absorb(const DecoderStep& step, int first) = 0;

  // Adds what came out since the last call.
  virtual void TakePieces(std::vector<Piece>& pieces) = 0;
  // Every sequence whole, best first. Once. REQUIRES: done().
  virtual std::vector<Piece> TakeSequences() = 0;
  virtual int generated_tokens() const = 0;
};

// settings.sequences independent ones, each drawn or the greedy one; they fork from the prompt.
// `prompt`: what processors look at.
std::unique_ptr<Continuation> ContinueBySampling(const ContinuationContext& context,
                                                 std::vector<int32_t> prompt);

// The best settings.sequences of a search; pieces come at its end.
std::unique_ptr<Continuation> ContinueByBeams(const ContinuationContext& context,
                                              std::vector<int32_t> prompt);

}  // namespace longview::models
