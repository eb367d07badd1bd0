// A Transformer-LS decoder made from a directory, and short ways to read with it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/generation/decoder.h"
#include "models/model_directory.h"
#include "models/transformer_ls/decoder.h"

namespace longview::models {

// Aborts with a message where the directory does not load.
class LsCase {
 public:
  LsCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20,
         int max_tokens = 1 << 14);

  LsDecoder& decoder() { return *decoder_; }
  const LsLmConfig& config() const { return decoder_->config(); }
  std::unique_ptr<DecoderSequence> New() { return decoder_->Open({}); }
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt) {
    return decoder_->Open(prompt);
  }

  // One step of one sequence; the wanted rows of logits.
  std::vector<float> Read(DecoderSequence& sequence, std::span<const int32_t> ids,
                          WantedLogits wanted = WantedLogits::kAll,
                          DecoderPhase phase = DecoderPhase::kPrefill);
  // Token by token, as decoding does; a row of logits each.
  std::vector<float> Step(DecoderSequence& sequence, std::span<const int32_t> ids);
  // Prefill in chunks of `chunk` tokens.
  std::vector<float> ReadInChunks(DecoderSequence& sequence, std::span<const int32_t> ids,
                                  int chunk);

 private:
  std::unique_ptr<LsDecoder> decoder_;
};

// Runs a step to its end; a failure is a failure of the test.
std::vector<std::vector<float>> RunStep(LsDecoder& decoder, std::span<const DecoderFeed> feeds);

// The largest value's place, the first of equal ones.
int32_t Greedy(std::span<const float> logits);

}  // namespace longview::models
