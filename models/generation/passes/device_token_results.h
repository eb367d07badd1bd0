// Logits, and tokens chosen from them, on their way from a device to the runs that want them.
#pragma once

#include <optional>
#include <vector>

#include "models/generation/decoder/token_run.h"
#include "models/generation/sampling/device_sampler.h"

namespace longview::models {

// One pass's, or a part of its. Members throw DeviceError.
class DeviceTokenResults {
 public:
  // Borrows all. `pinned`: as many rows of logits as are on their way at a time.
  DeviceTokenResults(const Device& device, DeviceSampler& sampler, float* pinned, int vocab)
      : device_(device), sampler_(sampler), pinned_(pinned), vocab_(static_cast<size_t>(vocab)) {}

  // A row of logits on the device goes to `to` when it is taken.
  void Bring(const float* logits, float* to);
  // The logits of a run that decodes: its token is chosen from them once Choose is called, or they
  // are brought.
  void BringOrChoose(const float* logits, const TokenRun& run);
  // Hands over the choice of tokens. Once between two calls of Take, behind all rows.
  void Choose();
  // Waits if anything is on its way, and gives it to the runs.
  void Take();

 private:
  const Device& device_;
  DeviceSampler& sampler_;
  float* const pinned_;
  const size_t vocab_;
  std::vector<float*> brought_;  // Destinations of rows of pinned_.
  std::vector<SamplingRow> sampled_;
  std::vector<std::optional<ChosenToken>*> chosen_;  // Destinations of the sampler's tokens.
};

}  // namespace longview::models
