// The next tokens of a batch, chosen on the device where its logits lie: those that Sampler chooses
// for the same logits, with the log-probabilities of ReportToken.
//
// Sums over the vocabulary are made in another order than on the host: see
// kernels/cuda/sampling/sampling_api.h.
//
// Used by one thread, the executor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/sampling/sampling_api.h"
#include "models/device/device_memory.h"
#include "models/generation/sampling/token_choice.h"

namespace longview::models {

// A row to be continued. Everything is borrowed until Hand returns.
struct SamplingRow {
  const float* logits = nullptr;  // [vocabulary], on the device.
  TokenChoice choice;
};

class DeviceSampler {
 public:
  // Whether these settings' tokens can be chosen on a device: greedy search and sampling with
  // temperature and every cut (top_k, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff), with
  // repetition_penalty, sequence_bias, minimum lengths, banned n-grams and words, suppressed
  // tokens. What else there is needs the host.
  static bool Takes(const GenerationSettings& settings);

  // Bytes of the device's memory for up to `rows` rows at once.
  static size_t DeviceBytes(int vocab, int rows);

  // Asks for all memory there will ever be. Throws DeviceError.
  DeviceSampler(const Device& device, int vocab, int rows);

  // Hands the choice of a token for each row, whatever the others are, to the stream; nothing
  // waits. Throws DeviceError. REQUIRES: no more rows than there is room for; settings that the
  // device takes; histories track distinct ids where the processors need them.
  void Hand(std::span<const SamplingRow> rows);

  // The tokens of the last Hand, in its order. REQUIRES: the stream was waited for since.
  std::vector<ChosenToken> Take() const;

 private:
  const Device& device_;
  const int vocab_;
  const size_t room_;  // Rows.
  const DeviceBlock memory_;
  const PinnedBlock lists_;
  const PinnedBlock results_;
  std::vector<int> reported_;  // For each row handed over.
};

}  // namespace longview::models
