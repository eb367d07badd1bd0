// A language model for tests of generation: its logits are a fixed function of the last three
// tokens, so every sequence can be computed by hand, and its sequences keep the rules of decoder.h
// with checks instead of memory.
//
// With an encoder the document stands in front of everything a sequence reads.
//
// A token is a byte; id 256 ends. Not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/generation/decoder/decoder.h"
#include "models/generation/decoder/encoder_stage.h"
#include "models/text/text_codec.h"

namespace longview::testing {

inline constexpr int kToyVocab = 257;
inline constexpr int32_t kToyEnd = 256;

// After these tokens. Letters and blanks are likely, the end now and then.
std::vector<float> ToyLogits(std::span<const int32_t> tokens);

class ToyCodec final : public models::TextCodec {
 public:
  // A text with the byte 0xff is refused.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  std::string Bytes(int32_t id) const override;
};

struct ToyOptions {
  int max_tokens = 1000;
  int prefill_alignment = 8;
  int source_tokens = 0;  // Tokens of a document; 0: no encoder.
};

// A test's view of a decoder.
struct ToyCounts {
  std::atomic<int> sequences{0};  // Alive.
  std::atomic<int> forks{0};
  std::atomic<int64_t> prefilled{0};  // Tokens read, each time.
  std::atomic<int64_t> decoded{0};
  std::atomic<int64_t> encoded{0};  // Tokens of documents.
  std::atomic<int> documents{0};    // Alive.
  std::atomic<int> costed{0};       // Documents whose cost was asked for.
  std::atomic<int> steps{0};
  std::atomic<bool> fail{false};  // The next step fails.
};

class ToyDecoder final : public models::Decoder {
 public:
  explicit ToyDecoder(const ToyOptions& options = {});

  int vocab_size() const override { return kToyVocab; }
  int max_tokens() const override { return options_.max_tokens; }
  int prefill_alignment() const override { return options_.prefill_alignment; }
  const models::DecoderCosts& costs() const override { return *costs_; }
  std::unique_ptr<models::DecoderSequence> Open(std::span<const int32_t> prompt,
                                                uint64_t space) override;
  std::unique_ptr<models::DecoderStep> Begin(std::span<const models::DecoderFeed> feeds) override;
  models::EncoderStage* encoder() override { return encoder_.get(); }

  const std::shared_ptr<ToyCounts>& counts() const { return counts_; }

  // A greedy continuation, by hand.
  static std::vector<int32_t> Greedy(std::vector<int32_t> prompt, int tokens);

 private:
  friend class ToySequence;

  const ToyOptions options_;
  const std::unique_ptr<models::DecoderCosts> costs_;
  const std::unique_ptr<models::EncoderStage> encoder_;
  const std::shared_ptr<ToyCounts> counts_ = std::make_shared<ToyCounts>();
  // Spaces and beginnings of aligned lengths.
  std::set<std::pair<uint64_t, std::vector<int32_t>>> cached_prefixes_;
};

}  // namespace longview::testing
