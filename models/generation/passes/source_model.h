// The encoder of a token model, as its family brings it to ForwardDecoder: the forward that reads a
// document, once for all sequences over it, and what is kept of it.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "kernels/cache/projection_cache.h"
#include "models/cost/stopwatch.h"
#include "models/dense/scratch_pool.h"
#include "models/device/device_workspace.h"
#include "models/encoder/pass.h"
#include "models/encoder/rules.h"
#include "models/generation/passes/token_model.h"

namespace longview::models {

// A document on its way through an encoder on the host. Used by the executor's thread; throws what
// LibTorch and the allocator throw.
class SourceReader {
 public:
  virtual ~SourceReader() = default;
  // Bytes that it holds from one piece to the next.
  virtual int64_t held_bytes() const = 0;
  // The next piece of the work that `read` of the document's tokens stand for; returns whether some
  // of that work is left.
  virtual bool Advance(int read) = 0;
};

// A document to read on the host. Borrowed.
struct SourceReading {
  const TokenFrame& frame;
  const EncoderSequence& document;     // Wants all its rows.
  const kernels::CacheSequence& kept;  // The part of it in frame.documents.
  float* states;                       // [tokens, width] last hidden states; null: not wanted.
  const ComputeContext& host;
  ScratchPool& scratch;
  RunTimes* times;  // May be null.
};

// Bytes of reading a document on the host.
struct SourceNeed {
  int64_t held = 0;       // From one piece to the next.
  int64_t workspace = 0;  // The most that a piece needs beside them.
};

// Constant once its model is loaded.
class SourceModel {
 public:
  using Sequences = EncoderPass::Sequences;

  virtual ~SourceModel() = default;

  virtual const SequenceRules& rules() const = 0;
  virtual int max_tokens() const = 0;  // Limit of a document.
  virtual int width() const = 0;       // Width of its last hidden states.
  // On the host a document's tokens are granted in multiples of it; a device reads it at once.
  virtual int prefill_alignment() const { return static_cast<int>(kernels::kBlockSlots); }

  // Cache of what is kept of documents; the slots of one there, at least one.
  virtual kernels::CacheShape Shape(kernels::DType blocks) const = 0;
  virtual int Slots(const EncoderSequence& document) const = 0;
  // Multiply-adds of attention of one token to a document's tokens; 0: they are the same for all
  // documents, and counted with the token.
  virtual double AttendWork(int64_t /*tokens*/) const { return 0; }

  // `document`: one that wants all its rows. Its last hidden states are rows to bring back if
  // `brings_states`. `kept` is its part of frame.documents; null: the forward is counted. The model
  // and what `frame` points to outlive the forward.
  virtual std::unique_ptr<EncoderPass> Forward(const TokenFrame& frame, Sequences document,
                                               const kernels::CacheSequence* kept,
                                               bool brings_states) const = 0;
  // The most that any document needs of a device, by what `most_bytes` says of one.
  virtual DeviceRunBytes MostBytes(absl::FunctionRef<DeviceRunBytes(Sequences)> most_bytes) const;

  // How the host reads it: by default the forward, layer by layer. `forward`: the forward's need.
  virtual SourceNeed HostNeed(const ComputeContext& host, const EncoderSequence& document,
                              const ForwardNeed& forward) const;
  virtual std::unique_ptr<SourceReader> Read(const SourceReading& what) const;
};

}  // namespace longview::models
