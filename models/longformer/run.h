// A batch of Longformer items in flight.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/longformer/encoder.h"
#include "models/longformer/heads.h"
#include "models/longformer/item.h"
#include "models/model.h"

namespace longview::models {

// Used by one executor thread. Failures of LibTorch surface in Take.
class LongformerRun final : public Run {
 public:
  // Borrowed arguments outlive the run.
  LongformerRun(const EncoderContext& context, const Tokenizer* tokenizer,
                std::span<const Item* const> items, ScratchKeeper& scratch,
                EncoderTimes* times = nullptr);

  bool Advance() override;
  void Drop(int i) override;
  absl::StatusOr<Answer> Take(int i) override;

 private:
  bool RunLayer();
  void RunHeads();

  const EncoderContext& context_;
  const Tokenizer* const tokenizer_;
  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  std::vector<const LongformerItem*> items_;
  std::vector<int> first_sequence_;  // Of each item, among all sequences; one entry more.
  std::vector<bool> dropped_;
  std::optional<EncoderRun> encoder_;  // From the first Advance on.
  std::vector<HeadOutput> outputs_;    // By item, after the last layer.
  absl::Status status_;
};

}  // namespace longview::models
