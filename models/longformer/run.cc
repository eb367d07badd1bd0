#include "models/longformer/run.h"

#include "models/longformer/answer.h"
#include "models/torch_guard.h"

namespace longview::models {

LongformerRun::LongformerRun(const EncoderContext& context, const Tokenizer* tokenizer,
                             std::span<const Item* const> items, ScratchKeeper& scratch,
                             EncoderTimes* times)
    : context_(context),
      tokenizer_(tokenizer),
      scratch_(scratch),
      times_(times),
      dropped_(items.size()) {
  first_sequence_.push_back(0);
  for (const Item* item : items) {
    items_.push_back(static_cast<const LongformerItem*>(item));
    first_sequence_.push_back(first_sequence_.back() +
                              static_cast<int>(items_.back()->sequences.size()));
  }
}

bool LongformerRun::Advance() {
  if (!status_.ok()) return false;
  bool more = false;
  status_ = GuardTorch("longformer", [&] { more = RunLayer(); });
  return status_.ok() && more;
}

bool LongformerRun::RunLayer() {
  if (!encoder_) {
    std::vector<const LongformerSequence*> sequences;
    for (const LongformerItem* item : items_) {
      for (const LongformerSequence& sequence : item->sequences) sequences.push_back(&sequence);
    }
    encoder_.emplace(context_, sequences, scratch_, times_);
    for (size_t i = 0; i < items_.size(); ++i) {
      if (dropped_[i]) Drop(static_cast<int>(i));
    }
  }
  if (encoder_->Advance()) return true;
  RunHeads();
  return false;
}

void LongformerRun::RunHeads() {
  std::vector<HeadInput> inputs;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (dropped_[i]) continue;
    HeadInput& input = inputs.emplace_back();
    input.item = items_[i];
    for (int s = first_sequence_[i]; s < first_sequence_[i + 1]; ++s) {
      input.rows.push_back(encoder_->Rows(s));
    }
  }
  std::vector<HeadOutput> computed = ComputeHeads(context_, inputs);
  outputs_.resize(items_.size());
  auto next = computed.begin();
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!dropped_[i]) outputs_[i] = std::move(*next++);
  }
}

void LongformerRun::Drop(int i) {
  dropped_[i] = true;
  if (!encoder_) return;
  for (int s = first_sequence_[i]; s < first_sequence_[i + 1]; ++s) encoder_->Drop(s);
}

absl::StatusOr<Answer> LongformerRun::Take(int i) {
  if (!status_.ok()) return status_;
  if (dropped_[i] || outputs_.empty()) return absl::CancelledError("the item was dropped");
  return MakeAnswer(*context_.config, tokenizer_, *items_[i], outputs_[i],
                    encoder_->Rows(first_sequence_[i]));
}

}  // namespace longview::models
