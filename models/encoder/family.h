// A family's contribution to the shared part of an encoder: places and cost of its sequences, a
// batch that runs layer by layer, and heads.
//
// The shared part is everything else between model.h and the layers: tokenising, limits, masks,
// which rows are wanted, calibration, dropped items, answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/dense/compute.h"
#include "models/dense/scratch_keeper.h"
#include "models/encoder/item.h"
#include "models/encoder/rules.h"
#include "models/encoder/sequence.h"
#include "models/encoder/work.h"

namespace longview::models {

// An item whose sequences went through the encoder.
struct HeadInput {
  const EncoderItem* item = nullptr;
  int first_sequence = 0;          // The item's first, as the batch counts them.
  std::vector<const float*> rows;  // Per sequence: its wanted rows, [wanted, H].
};

struct HeadOutput {
  // [labels], [choices], [T, labels], [T, 2] (start, end) or [T or masks, V]; empty if nothing
  // of the item reads them.
  std::vector<float> logits;
  std::vector<float> embedding;  // [d], normalised if asked for.
  std::vector<float> token_rows;  // [T, d] of multi-vector answers.
};

// Sequences on their way through the layers. One thread uses it; it computes on all. Its
// constructor, Advance and ComputeHeads throw what LibTorch and the allocator throw.
class EncoderBatch {
 public:
  virtual ~EncoderBatch() = default;

  // Runs the next layer, the embeddings before the first; returns whether layers are left.
  virtual bool Advance() = 0;

  // Sequence i leaves the batch before the next layer.
  virtual void Drop(int i) = 0;

  // After the last layer: the wanted rows of sequence i, [wanted, H]. REQUIRES: not dropped.
  virtual const float* Rows(int i) const = 0;

  // After the last layer: the heads of all items that were not dropped, together. A result's bits
  // do not depend on the other items.
  virtual std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs) const = 0;
};

// A loaded encoder. Thread-safe but for Begin, which belongs to the executor's thread.
class EncoderFamily : public SequenceRules {
 public:
  using Sequences = std::span<const EncoderSequence* const>;

  virtual Compute compute() const = 0;
  virtual double parameters() const = 0;
  virtual double memory_bytes() const = 0;
  // On the checkpoint: for logs and --check, a line each.
  virtual std::vector<std::string> notes() const { return {}; }

  // The batch. REQUIRES: sequences, scratch and this outlive it. `times` is added to, unless null.
  virtual std::unique_ptr<EncoderBatch> Begin(Sequences sequences, ScratchKeeper& scratch,
                                              EncoderTimes* times) const = 0;

  // Exact bytes that a batch of these sequences uses beside weights and logits.
  virtual size_t WorkspaceBytes(Sequences sequences) const = 0;

  virtual EncoderWork WorkOf(const EncoderSequence& sequence) const = 0;
};

}  // namespace longview::models
