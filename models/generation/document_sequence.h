// Sequences over a document: their own tokens in the cache, and what an encoder makes of the
// document once, for all forks.
// Belongs to the executor's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/generation/cached_sequence.h"

namespace longview::models {

// A document on its way through an encoder, then as what decoding attends to.
class ReadDocument {
 public:
  virtual ~ReadDocument() = default;

  // Tokens that no step was granted yet.
  virtual int unencoded() const = 0;
  // The last hidden states [tokens, width], fp32, once it is read, if rows of it are wanted. Once.
  virtual std::vector<std::byte> TakeStates() = 0;

  // A step reads so many tokens more. RESOURCE_EXHAUSTED where memory was not reserved.
  virtual absl::Status Begin(int tokens) = 0;
  // The next piece of that; sets whether work is left. Throws what LibTorch and the allocator
  // throw, and DeviceError.
  virtual absl::Status Advance(bool* more) = 0;
  // Nobody waits for it: gives back at once what its reading holds. It is neither read on nor
  // attended to.
  virtual void Drop() = 0;
};

class DocumentSequence final : public CachedSequence {
 public:
  // `read` null: there is no document.
  DocumentSequence(kernels::CacheSequence cache, std::shared_ptr<ReadDocument> read)
      : CachedSequence(std::move(cache)), read_(std::move(read)) {}

  std::unique_ptr<DecoderSequence> Fork() const override {
    return std::make_unique<DocumentSequence>(cache().Fork(), read_);
  }
  // Does nothing: cached tokens mean nothing without their document, which later requests lack.
  void Publish(uint64_t) override {}
  int unencoded() const override { return read_ == nullptr ? 0 : read_->unencoded(); }
  std::vector<std::byte> TakeEncoderStates() override {
    return read_ == nullptr ? std::vector<std::byte>() : read_->TakeStates();
  }

  ReadDocument* document() const { return read_.get(); }

 private:
  const std::shared_ptr<ReadDocument> read_;
};

}  // namespace longview::models
