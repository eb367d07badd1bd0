// Short ways to read with a decoder: whole texts, chunks, token by token.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/generation/decoder.h"

namespace longview::models {

// Borrows the decoder.
class DecoderReader {
 public:
  explicit DecoderReader(Decoder* decoder = nullptr) : decoder_(decoder) {}
  virtual ~DecoderReader() = default;

  Decoder& decoder() const { return *decoder_; }
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
  Decoder* decoder_;
};

// Runs a step to its end; a failure is a failure of the test.
std::vector<std::vector<float>> RunStep(Decoder& decoder, std::span<const DecoderFeed> feeds);

// The largest value's place, the first of equal ones.
int32_t Greedy(std::span<const float> logits);

// The value, or its status on stderr and the end of the test binary.
template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "case: %s\n", value.status().ToString().c_str());
  std::abort();
}

}  // namespace longview::models
