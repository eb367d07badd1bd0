// A document of LED: on its way through the encoder, then as the keys and values that every decoder
// layer makes of it once. Forks of a sequence share it.
//
// On the host it is read in pieces, with other work between them; on a device whole.
//
// Masked tokens are left out of keys and values: attention to a document has no positions, so
// nobody misses them.
// Belongs to the executor's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/document_sequence.h"
#include "models/led/context.h"
#include "models/longformer/piecewise_encoder.h"
#include "models/stack/pass_layout.h"

namespace longview::models {

// Rows of last hidden states that keys are made of, and where these go in the cache.
struct KeyRows {
  std::vector<int32_t> rows;
  std::vector<kernels::CachePlace> places;
};

class LedDocument : public ReadDocument {
 public:
  // Borrows all but the document. `times` may be null.
  static std::shared_ptr<LedDocument> Open(const LedContext& context, EncoderSequence document,
                                           ScratchKeeper& scratch, EncoderTimes* times);
  LedDocument(const LedDocument&) = delete;
  LedDocument& operator=(const LedDocument&) = delete;

  // Bytes of the closed form: keys, values, and, on the host, what reading and states hold.
  static double Bytes(const LedContext& context, const EncoderSequence& document);
  // Scratch of reading all of it in one step.
  static size_t WorkspaceBytes(const LedContext& context, const EncoderSequence& document);

  int unencoded() const override { return document_.tokens() - read_; }
  const StackDocument& keys() const { return keys_; }
  std::vector<std::byte> TakeStates() override { return std::move(states_); }

 protected:
  LedDocument(const LedContext& context, EncoderSequence document);

  // Bytes of the states, if they are wanted.
  static int64_t StateBytes(const LedContext& context, const EncoderSequence& document);

  // Room for the keys of tokens [first, first + count), rows counted from the first. False: no
  // memory.
  bool Append(int64_t first, int64_t count, KeyRows& keys);

  const LedContext& context_;
  const EncoderSequence document_;
  std::vector<std::byte> states_;  // [tokens, H] fp32, if wanted.
  int read_ = 0;

 private:
  kernels::CacheSequence cache_;
  StackDocument keys_;
};

}  // namespace longview::models
