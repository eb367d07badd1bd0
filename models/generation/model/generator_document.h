// A document of a generator: its tokens, and a sequence that has read them in aligned chunks.
//
// The last tokens, at least one and at most `prefill_alignment`, wait unread and are read again by
// whoever continues: so its first logits are there, and its bits are those of the whole text read
// at once.
//
// tokens() and state_bytes() are thread-safe; the rest belongs to the executor's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/generation/decoder/decoder.h"
#include "models/model.h"

namespace longview::models {

class GeneratorDocument final : public Document {
 public:
  // `decoder` is borrowed.
  explicit GeneratorDocument(Decoder& decoder)
      : decoder_(decoder), sequence_(decoder.OpenEmpty()) {}

  int tokens() const override { return tokens_.load(std::memory_order_acquire); }
  double state_bytes() const override {
    return tokens() == 0 ? 0 : decoder_.costs().StateBytes(0, tokens(), 1);
  }

  std::span<const int32_t> ids() const { return ids_; }

  // Tokens of a text of `total` that a document reads ahead.
  static int ReadAhead(int total, int prefill_alignment) {
    return total == 0 ? 0 : (total - 1) / prefill_alignment * prefill_alignment;
  }

  // Null after a piece that was not read to its end.
  const DecoderSequence* sequence() const { return sequence_.get(); }

  // The sequence, to read on; the document is unusable until Put gives it back together with the
  // tokens that are new.
  std::unique_ptr<DecoderSequence> Lend() { return std::move(sequence_); }
  void Put(std::unique_ptr<DecoderSequence> sequence, std::span<const int32_t> ids) {
    sequence_ = std::move(sequence);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    tokens_.store(static_cast<int>(ids_.size()), std::memory_order_release);
  }

 private:
  Decoder& decoder_;
  std::unique_ptr<DecoderSequence> sequence_;
  std::vector<int32_t> ids_;
  std::atomic<int> tokens_{0};
};

}  // namespace longview::models
