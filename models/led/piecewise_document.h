// A document that the host reads in pieces, so that others' tokens go on between them.
#pragma once

#include <memory>

#include "models/led/document.h"

namespace longview::models {

class PiecewiseDocument final : public LedDocument, private EncodedRows {
 public:
  PiecewiseDocument(const LedContext& context, EncoderSequence document, ScratchKeeper& scratch,
                    EncoderTimes* times)
      : LedDocument(context, std::move(document)), scratch_(scratch), times_(times) {}
  ~PiecewiseDocument() override;

  // Bytes from the cache's budget while it is read; scratch of its largest piece.
  static double HeldBytes(const LedContext& context, const EncoderSequence& document);
  static size_t PieceBytes(const LedContext& context, const EncoderSequence& document);

  absl::Status Begin(int tokens) override;
  absl::Status Advance(bool* more) override;
  void Drop() override { GiveBack(); }

 private:
  void Take(int64_t first, int64_t count, const float* x, const std::byte* input) override;
  double LinearWork() const override;
  bool Hold(int64_t bytes);
  void GiveBack();

  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  std::unique_ptr<PiecewiseEncoder> encoder_;  // While it is read.
  int64_t held_bytes_ = 0;                     // The encoder's, counted by the budget.
  int64_t until_ = 0;                          // Rows of the encoder.
  bool no_memory_ = false;
};

}  // namespace longview::models
