// The bidirectional Composite Slice Transformer over a ragged batch: [tokens, D] and offsets, no
// padding. Definition: Lee et al. 2023, section 3, with the choices of config.h. A layer, X its
// input (normalised first in a pre-norm model), cut into slices of L tokens:
//
//   Y_l = attention of a slice's tokens to the slice, extended by e tokens on either side
//   S   = mean of Y_l over the slice's tokens
//   Y_g = attention of all S to all S of the document
//   O   = (Y_l + the Y_g of the token's slice) W_o
//
// Both scales may share one projection. Orders `parallel` and `global_first` pool X instead of
// Y_l; the latter's tokens read X + Y_g.
//
// The residual stream is fp32 in both compute types; with bf16 the inputs of linears and of
// attention are rounded, sums, softmax and norms stay fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/pool/slice_pool.h"
#include "models/cst/buffers.h"
#include "models/dense/scratch_keeper.h"
#include "models/encoder/family.h"
#include "models/encoder/ragged_batch.h"
#include "models/encoder/residual_rows.h"

namespace longview::models {

class CstBatch final : public EncoderBatch {
 public:
  using Context = CstContext;
  using Sequences = RaggedBatch::Sequences;

  // REQUIRES: sequences, context and scratch outlive the batch. `times` may be null.
  CstBatch(const CstContext& context, Sequences sequences, ScratchKeeper& scratch,
           EncoderTimes* times);

  // Exact bytes of scratch that a batch of these sequences borrows, panel results aside.
  static size_t ScratchBytes(const CstContext& context, Sequences sequences);

  bool Advance() override;
  void Drop(int i) override { batch_.Drop(i); }
  const float* Rows(int i) const override;
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs) const override;

 private:
  static CstPlan MakePlan(const CstContext& context, const RaggedBatch& batch);
  void LeaveDropped();

  void Embed();

  // Y_g and Y_l to z, in the model's order.
  void Attend(const CstLayer& layer);
  // Y_l of `from` [rows, D] to z. `from` may be z.
  void MixTokens(const CstLayer& layer, const std::byte* from);
  void AttendTokens(const CstLayer& layer, const std::byte* from);
  void MixSlice(const CstMixer& mixer, const CstSlice& slice, const std::byte* from,
                float* scratch);
  // S of `from`, and Y_g.
  void AttendSlices(const CstLayer& layer, const std::byte* from);
  void Pool(const CstLayer& layer, const std::byte* from);
  void PoolLinearly(const DenseLayer& pool, const std::byte* from);
  // z = `from` + the Y_g of each row's slice.
  void AddSlices(const std::byte* from);
  void Run(const kernels::Plan& plan);  // With call_.

  ResidualRows RowsBeside(std::byte* rows) const { return {buffers_.x, rows, width_, row_bytes_}; }

  const CstContext context_;
  const CstConfig& config_;
  const CstWeights& weights_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;                 // Of [D] in the compute type.
  const std::vector<float> zeros_;          // [D]
  const std::vector<float> no_mixer_bias_;  // [h, D]
  EncoderTimes* const times_;
  RaggedBatch batch_;
  CstPlan plan_;
  ScratchLoan scratch_;
  CstBuffers buffers_;
  CstCall call_;
  std::vector<kernels::SlicePiece> pieces_;
  int layer_ = 0;
  std::vector<int64_t> first_row_;  // After the last layer: of each sequence's wanted rows.
};

}  // namespace longview::models
