// Scores of the prompt itself by the logits along it: its log-probabilities, and the logits as a
// tensor. Belongs to the executor's thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "models/generation/decoder/decoder.h"
#include "models/generation/model/generation_item.h"
#include "models/model.h"
#include "models/text/text_codec.h"

namespace longview::models {

// Bytes of a token's number and, with log-probabilities, of its own and of as many others.
size_t TokenBytes(const std::optional<int>& logprobs);

// Bytes that the prompt takes as a piece, with the log-probabilities that were asked for.
double EchoBytes(const GenerationItem& item);

class PromptScores final : public LogitSink {
 public:
  // All borrowed; `codec` may be null.
  PromptScores(const GenerationItem& item, const TextCodec* codec, int vocab);

  bool wanted() const { return item_.scores_prompt() || item_.wants_logits; }

  // The rows [tokens, vocabulary] of the text's tokens from `position` on; document tokens count.
  // Every position of the prompt, and the one before it, is added once, in order.
  void Add(int position, std::span<const float> rows) override;

  // The prompt as a piece; with log-probabilities once all rows were added.
  Piece TakePiece();
  // "logits" [T, vocabulary], of the prompt's T tokens.
  HostTensor TakeLogits();

 private:
  const GenerationItem& item_;
  const TextCodec* const codec_;
  const int vocab_;
  std::vector<TokenLogprob> logprobs_;
  std::vector<std::vector<TokenLogprob>> top_;
  std::vector<std::byte> logits_;
};

}  // namespace longview::models
