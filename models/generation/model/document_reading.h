// Reads a piece of text into a document, in aligned chunks; nothing is generated.
#pragma once

#include <memory>
#include <vector>

#include "models/generation/model/generation_item.h"
#include "models/generation/model/generator_run.h"

namespace longview::models {

class DocumentReading final : public StepMember {
 public:
  // Takes the document's sequence until everything is read; destroyed before, it leaves the
  // document unusable. `item` and `decoder` are borrowed. REQUIRES: the document has a sequence.
  DocumentReading(const GenerationItem& item, const Decoder& decoder);

  Need need() const override;
  bool done() const override { return !status_.ok() || sequence_ == nullptr; }
  std::vector<Piece> TakePieces() override { return {}; }
  absl::StatusOr<Answer> Take() override;

  void AddFeeds(int prefill, std::vector<DecoderFeed>& feeds) override;
  void Absorb(const DecoderStep& step, int first) override;
  void Fail(const absl::Status& status) override;

 private:
  int unread() const { return static_cast<int>(tokens_.size()) - read_; }
  void FinishIfRead();

  const GenerationItem& item_;
  const Decoder& decoder_;
  std::unique_ptr<DecoderSequence> sequence_;  // Null once the document has it back.
  std::vector<int32_t> tokens_;                // Tokens to read, from the sequence's place on.
  int read_ = 0;                               // Tokens read so far.
  absl::Status status_;
};

}  // namespace longview::models
