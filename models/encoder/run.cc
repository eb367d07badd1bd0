#include "models/encoder/run.h"

#include "models/encoder/answer.h"
#include "models/torch_guard.h"

namespace longview::models {

EncoderTaskRun::EncoderTaskRun(const SeatedEncoder& encoder, const EncoderBackEnd& back,
                               std::span<const Item* const> items, ScratchKeeper& scratch,
                               TeamChoice* teams, EncoderTimes* times)
    : encoder_(encoder),
      back_(back),
      scratch_(scratch),
      times_(times),
      turn_(teams),
      dropped_(items.size()) {
  turn_.Begin(items);
  first_sequence_.push_back(0);
  for (const Item* item : items) {
    items_.push_back(static_cast<const EncoderItem*>(item));
    first_sequence_.push_back(first_sequence_.back() +
                              static_cast<int>(items_.back()->sequences.size()));
  }
}

bool EncoderTaskRun::Advance() {
  if (!status_.ok()) return false;
  bool more = false;
  {
    const TeamTurn::Part part(turn_);
    status_ = GuardTorch(encoder_.facts().family, [&] { more = RunLayer(); });
  }
  if (status_.ok() && !more) turn_.End();
  return status_.ok() && more;
}

bool EncoderTaskRun::RunLayer() {
  if (!batch_) {
    std::vector<const EncoderSequence*> sequences;
    for (const EncoderItem* item : items_) {
      for (const EncoderSequence& sequence : item->sequences) sequences.push_back(&sequence);
    }
    batch_ = encoder_.Begin(sequences, scratch_, times_);
    for (size_t i = 0; i < items_.size(); ++i) {
      if (dropped_[i]) Drop(static_cast<int>(i));
    }
  }
  if (batch_->Advance()) return true;
  RunHeads();
  return false;
}

void EncoderTaskRun::RunHeads() {
  std::vector<HeadInput> inputs;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (dropped_[i]) continue;
    HeadInput& input = inputs.emplace_back();
    input.item = items_[i];
    input.first_sequence = first_sequence_[i];
    for (int s = first_sequence_[i]; s < first_sequence_[i + 1]; ++s) {
      input.rows.push_back(batch_->Rows(s));
    }
  }
  std::vector<HeadOutput> computed = batch_->ComputeHeads(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    back_.sentence->Finish(*inputs[i].item, inputs[i].rows[0], *back_.pool, computed[i]);
  }
  outputs_.resize(items_.size());
  auto next = computed.begin();
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!dropped_[i]) outputs_[i] = std::move(*next++);
  }
}

void EncoderTaskRun::Drop(int i) {
  dropped_[i] = true;
  turn_.Spoil();
  if (!batch_) return;
  for (int s = first_sequence_[i]; s < first_sequence_[i + 1]; ++s) batch_->Drop(s);
}

absl::StatusOr<Answer> EncoderTaskRun::Take(int i) {
  if (!status_.ok()) return status_;
  if (dropped_[i] || outputs_.empty()) return absl::CancelledError("the item was dropped");
  return MakeAnswer(encoder_.facts(), back_.tokenizer, *items_[i], outputs_[i],
                    batch_->Rows(first_sequence_[i]));
}

}  // namespace longview::models
