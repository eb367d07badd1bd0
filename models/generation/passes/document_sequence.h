// Sequences over a document: their own tokens in the cache, and what an encoder makes of the
// document once, for all forks.
// Belongs to the executor's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "models/generation/decoder/cached_sequence.h"
#include "models/generation/decoder/token_run.h"
#include "models/generation/passes/pass_document.h"

namespace longview::models {

class DocumentSequence final : public CachedSequence {
 public:
  // `document` null: there is none.
  DocumentSequence(kernels::CacheSequence cache, std::shared_ptr<PassDocument> document)
      : CachedSequence(std::move(cache)), document_(std::move(document)) {}

  std::unique_ptr<DecoderSequence> Fork() const override {
    return std::make_unique<DocumentSequence>(cache().Fork(), document_);
  }
  // Does nothing: cached tokens mean nothing without their document, which later requests lack.
  void CachePrefix(uint64_t) override {}
  int unencoded() const override { return document_ == nullptr ? 0 : document_->unencoded(); }
  std::vector<std::byte> TakeEncoderStates() override {
    return document_ == nullptr ? std::vector<std::byte>() : document_->TakeStates();
  }

  PassDocument* document() const { return document_.get(); }

 private:
  const std::shared_ptr<PassDocument> document_;
};

// The document of a run's sequence, of a model with an encoder; null while a forward is counted.
inline const PassDocument* DocumentOf(const TokenRun& run) {
  if (run.sequence == nullptr) return nullptr;
  return static_cast<const DocumentSequence*>(run.sequence)->document();
}

}  // namespace longview::models
