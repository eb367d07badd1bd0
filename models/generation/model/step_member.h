// A generation as GeneratorRun sees it: what it feeds to a step, and what it makes of the logits.
// Belongs to the executor's thread.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "models/generation/decoder/decoder.h"
#include "models/model.h"

namespace longview::models {

class StepMember : public Generation {
 public:
  // Adds the feeds of a step: `prefill` tokens of the prompt, or with 0 its sequences' next tokens.
  virtual void AddFeeds(int prefill, std::vector<DecoderFeed>& feeds) = 0;
  // After the step: its feeds' logits, beginning with feed `first`.
  virtual void Absorb(const DecoderStep& step, int first) = 0;
  // The step failed; so has the generation.
  virtual void Fail(const absl::Status& status) = 0;
};

}  // namespace longview::models
