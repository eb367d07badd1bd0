// A sequence over a stack whose layers attend to a document too.
// Belongs to the executor's thread.
#pragma once

#include "models/generation/cached_sequence.h"
#include "models/stack/pass_layout.h"

namespace longview::models {

class DocumentSequence : public CachedSequence {
 public:
  using CachedSequence::CachedSequence;

  // Never null.
  virtual const StackDocument* document() const = 0;
};

}  // namespace longview::models
