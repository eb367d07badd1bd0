// A document that the host reads in pieces, so that others' tokens go on between them.
#pragma once

#include <memory>
#include <utility>

#include "models/generation/cache_room.h"
#include "models/led/document.h"

namespace longview::models {

class PiecewiseDocument final : public LedDocument, private EncodedRows {
 public:
  PiecewiseDocument(const LedContext& context, EncoderSequence document, ScratchKeeper& scratch,
                    EncoderTimes* times)
      : LedDocument(context, std::move(document)),
        scratch_(scratch),
        times_(times),
        held_(*context_.budget) {}

  // Bytes from the cache's budget while it is read; scratch of its largest piece.
  static double ReadingBytes(const LedContext& context, const EncoderSequence& document);
  static size_t PieceBytes(const LedContext& context, const EncoderSequence& document);

  absl::Status Begin(int tokens) override;
  absl::Status Advance(bool* more) override;
  void Drop() override;

 private:
  void Take(int64_t first, int64_t count, const float* x, const std::byte* input) override;
  double LinearWork() const override;

  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  std::unique_ptr<PiecewiseEncoder> encoder_;  // While it is read.
  HeldBytes held_;                             // By the encoder and the states.
  int64_t until_ = 0;                          // Rows of the encoder.
  bool no_memory_ = false;
};

}  // namespace longview::models
