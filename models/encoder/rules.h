// The rules of a family for preparing documents: its facts, the places of tokens, global tokens.
// Requests become sequences by these alone, so they need no layers.
//
// Implementations are immutable: thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "models/encoder/facts.h"
#include "models/encoder/sequence.h"
#include "models/model.h"

namespace longview::models {

class SequenceRules {
 public:
  virtual ~SequenceRules() = default;

  virtual const EncoderFacts& facts() const = 0;

  // Fills sequence.positions, may drop leading tokens. `field` names the sequence in messages.
  virtual absl::Status Place(const std::string& field, EncoderSequence& sequence) const = 0;

  // With facts().global_attention: marks what the task makes global if the request does not say.
  virtual absl::Status MarkDefaultGlobals(const std::string& field, Task task,
                                          EncoderSequence& sequence) const;
};

}  // namespace longview::models
