// The encoder of a generating family that has one: a request's document goes through it once, what
// decoding attends to (keys and values) is kept, and every sequence over the document shares it.
//
// A sequence opened here has read nothing. Steps read its document first (DecoderFeed::encode), in
// as many pieces as the scheduler makes of it, so that a long document delays nobody's next token
// by more than a step; then the start of its output and what follows, as any decoder's sequence.
// Forks share the document, which goes with the last of them.
//
// Reading t of a document's n tokens means that t / n of the encoder's work is done, in whatever
// order (layers of all rows, not rows of all layers). Pieces change no bit.
#pragma once

#include <cstdint>
#include <memory>

#include "models/encoder/rules.h"
#include "models/encoder/sequence.h"
#include "models/generation/decoder/decoder.h"

namespace longview::models {

// The price of a document.
struct DocumentCost {
  // Until its last sequence is gone: keys, values, and what its reading needs between two steps.
  // Exact.
  double bytes = 0;
  double workspace_bytes = 0;  // Scratch of one step that reads all of it.
  double seconds = 0;          // Predicted, of reading all of it.
  double multiply_adds = 0;    // Linears and attention, of reading all of it.
};

class EncoderStage {
 public:
  virtual ~EncoderStage() = default;

  // How requests become documents. Thread-safe, as all that is const here.
  virtual const SequenceRules& rules() const = 0;
  virtual int max_tokens() const = 0;  // Limit of a document.
  virtual int width() const = 0;       // Width of its last hidden states.

  // On the executor's thread. `document` is copied; with wanted rows its last hidden states are
  // kept too.
  virtual std::unique_ptr<DecoderSequence> Open(const EncoderSequence& document) = 0;

  // Plans the whole document's forward: once per request, when it is prepared.
  virtual DocumentCost Cost(const EncoderSequence& document) const = 0;
  // Predicted, of attending to it from one new token, beside DecoderCosts::DecodeSeconds.
  virtual double AttendSeconds(int64_t tokens) const = 0;
  virtual double AttendMultiplyAdds(int64_t tokens) const = 0;
};

}  // namespace longview::models
