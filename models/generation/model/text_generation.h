// A generating request at work: reads its prompt, then goes on with samples or beams.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/generation/model/continuation.h"
#include "models/generation/model/generation_item.h"
#include "models/generation/model/generator_run.h"
#include "models/generation/model/prompt_scores.h"
#include "models/generation/sampling/logits_processors.h"

namespace longview::models {

class TextGeneration final : public StepMember {
 public:
  // `sequence` has read a beginning of document and prompt, but not all of it, and none of the
  // prompt if the item scores it; with a source, nothing at all. Everything else is borrowed;
  // `codec` may be null.
  TextGeneration(const GenerationItem& item, std::unique_ptr<DecoderSequence> sequence,
                 Decoder& decoder, const TextCodec* codec);

  Need need() const override;
  bool done() const override;
  std::vector<Piece> TakePieces() override;
  absl::StatusOr<Answer> Take() override;

  void AddFeeds(int prefill, std::vector<DecoderFeed>& feeds) override;
  void Absorb(const DecoderStep& step, int first) override;
  void Fail(const absl::Status& status) override;

 private:
  int unread() const { return static_cast<int>(context_tokens_.size()) - read_; }
  // Grants of the scheduler: tokens of the prompt; with a source, of that. The start of the
  // output is read with the source's last.
  int left_to_grant() const;
  double PrefillSeconds() const;
  WantedLogits WantedOf(int prefill) const;
  void AbsorbPrefill(const DecoderStep& step, int feed);
  HostTensor TakeStates();

  const GenerationItem& item_;
  Decoder& decoder_;
  std::vector<int32_t> context_tokens_;  // Tokens of document and prompt.
  const double encode_seconds_;          // Per token of the source.
  const LogitsProcessors processors_;
  PromptScores scores_;
  std::unique_ptr<DecoderSequence> sequence_;   // Until the prompt is read.
  std::unique_ptr<Continuation> continuation_;  // Null: nothing is to be generated.
  std::vector<Piece> empty_;                    // The sequences then, once the prompt is read.
  int read_ = 0;
  // State of the step at hand.
  int granted_ = 0;
  int fed_ = 0;  // Tokens of the prompt.
  const int cached_;
  std::vector<std::byte> states_;  // The encoder's, if wanted.
  std::optional<Piece> prompt_;
  bool empty_taken_ = false;
  bool taken_ = false;
  absl::Status status_;
};

}  // namespace longview::models
