// A step of a decoder with an encoder in flight: pieces of the documents that it reads, then the
// tokens of sequences, all of them together. Sequences are those of document_sequence.h.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/generation/decoder/decoder.h"
#include "models/generation/decoder/pass_step.h"
#include "models/generation/passes/document_sequence.h"

namespace longview::models {

// Used by the executor's thread.
class DocumentStep final : public DecoderStep {
 public:
  // The feeds' tokens outlive the step.
  DocumentStep(const PassStep::Rules& rules, std::span<const DecoderFeed> feeds,
               PassStep::MakePass make)
      : family_(rules.family),
        feeds_(feeds.begin(), feeds.end()),
        dropped_(feeds.size()),
        tokens_(rules, feeds, std::move(make)) {}

  bool Advance() override;
  void Drop(int feed) override;
  absl::Status status() const override { return status_; }
  std::span<const float> Logits(int feed) const override { return tokens_.Logits(feed); }
  const ChosenToken* Chosen(int feed) const override { return tokens_.Chosen(feed); }

 private:
  absl::Status Run(bool* more);
  PassDocument& DocumentBeingRead() const;

  const std::string family_;
  std::vector<DecoderFeed> feeds_;
  std::vector<bool> dropped_;
  size_t reading_ = 0;  // The feed whose document is read; past the last: tokens are.
  bool begun_ = false;
  PassStep tokens_;
  absl::Status status_;
};

}  // namespace longview::models
