// Short ways to read with a decoder: whole texts, chunks, token by token.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/generation/decoder/decoder.h"

namespace longview::models {

// Borrows the decoder.
class DecoderReader {
 public:
  explicit DecoderReader(Decoder* decoder = nullptr) : decoder_(decoder) {}
  virtual ~DecoderReader() = default;

  Decoder& decoder() const { return *decoder_; }
  std::unique_ptr<DecoderSequence> New() { return decoder_->OpenEmpty(); }
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt) {
    return decoder_->Open(prompt, /*space=*/0);
  }

  // Random ids of the vocabulary, the same for a seed.
  std::vector<int32_t> Text(int tokens, uint32_t seed) const;

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

// A text of `tokens` read in chunks has the bits of the whole, and so has what is decoded behind
// it.
void ExpectCutsChangeNoBit(DecoderReader& model, int tokens, std::initializer_list<int> chunks);

// Behind `shared` tokens, a fork reads `tail` more like a fresh sequence, whatever `other` tokens
// another fork read before.
void ExpectForkReadsLikeFresh(DecoderReader& model, int shared, int tail, int other);

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
