// A sequence of LED: its own tokens in the cache, and the document it shares with its forks.
// Belongs to the executor's thread.
#pragma once

#include <memory>
#include <utility>

#include "models/led/document.h"
#include "models/stack/sequence.h"

namespace longview::models {

class LedSequence final : public DocumentSequence {
 public:
  LedSequence(kernels::CacheSequence cache, std::shared_ptr<LedDocument> read)
      : DocumentSequence(std::move(cache)), read_(std::move(read)) {}

  std::unique_ptr<DecoderSequence> Fork() const override {
    return std::make_unique<LedSequence>(cache().Fork(), read_);
  }
  // What a sequence read means nothing without its document.
  void Publish(uint64_t) override {}
  int unencoded() const override { return read_->unencoded(); }
  std::span<const float> encoder_states() const override { return read_->states(); }
  const StackDocument* document() const override { return &read_->keys(); }

  LedDocument& read() { return *read_; }

 private:
  std::shared_ptr<LedDocument> read_;
};

}  // namespace longview::models
