// Longformer's encoder over a ragged batch: [tokens, H] and offsets, no padding anywhere.
// Definition: Beltagy et al. 2020, section 3; HuggingFace LongformerModel (post-LayerNorm layers).
//
// The residual stream is fp32 in both compute types; with bf16 the inputs of linears and of
// attention are rounded, sums, softmax and norms stay fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "models/dense/scratch_keeper.h"
#include "models/encoder/family.h"
#include "models/encoder/ragged_batch.h"
#include "models/encoder/work.h"
#include "models/longformer/encoder_buffers.h"

namespace longview::models {

// A batch in flight. One thread uses it; it computes on the context's pool.
// The constructor and Advance throw what LibTorch and the allocator throw (torch_guard.h).
class EncoderRun final : public EncoderBatch {
 public:
  using Context = EncoderContext;
  using Sequences = RaggedBatch::Sequences;

  // REQUIRES: sequences, context and scratch outlive the run; every sequence has a token and a
  // wanted row. `times` is added to, unless null.
  EncoderRun(const EncoderContext& context, Sequences sequences, ScratchKeeper& scratch,
             EncoderTimes* times = nullptr);

  // Exact bytes of scratch that a run of these sequences borrows, panel results aside.
  static size_t ScratchBytes(const EncoderContext& context, Sequences sequences);

  // Runs the next layer, the embeddings before the first; returns whether layers are left.
  bool Advance() override;

  // Sequence i leaves the batch before the next layer.
  void Drop(int i) override { batch_.Drop(i); }

  // After the last layer: the wanted rows of sequence i, [wanted, H]. REQUIRES: not dropped.
  const float* Rows(int i) const override;

  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs) const override;

 private:
  using Plans = std::map<int, LayerPlan>;  // By the first layer of the pattern, or kLast.

  static Plans MakePlans(const EncoderContext& context, const RaggedBatch& batch, bool subset);
  static EncoderSizes SizesOf(const EncoderContext& context, const Plans& plans);
  void LeaveDropped();

  void Embed();
  void EmbedRow(int64_t row, const EncoderSequence& sequence, int token, float* parts);
  void ProjectLocal(const LongformerLayer& layer, const LayerPlan& plan);
  void AttendLocal(const LayerPlan& plan);
  void KeepOutputs(const LayerPlan& plan);

  const EncoderContext context_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;  // Of [H] in the compute type.
  EncoderTimes* const times_;
  // Some sequence wants less than all its rows. Kept when sequences leave, so that plans only
  // ever shrink and buffers stay large enough.
  const bool subset_;
  RaggedBatch batch_;
  Plans plans_;
  std::optional<ScratchLoan> scratch_;
  EncoderBuffers buffers_;
  int layer_ = 0;
};

}  // namespace longview::models
