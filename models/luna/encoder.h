// Luna's encoder over a ragged batch: [tokens, d] and offsets, no padding.
// Definition: Ma et al. 2021, section 3, as the published code (fairseq-apollo) computes it.
// A layer, post-norm (pre-norm reads normalised x and p, and adds without a norm):
//
//   Y_P = softmax(p W_pq (x W_pk)^T) x W_pv          pack: l rows over all tokens
//   Y_X = softmax(x W_q (Y_P W_k)^T) Y_P W_v W_out   unpack: tokens over l rows
//   x   = LN(x + Y_X);  x = LN(x + FFN(x));  p = LN(p + Y_P)
//
// The residual streams x and p are fp32 in both compute types; with bf16 the inputs of linears
// and of attention are rounded, sums, softmax and norms stay fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/dense/scratch_keeper.h"
#include "models/encoder/family.h"
#include "models/encoder/ragged_batch.h"
#include "models/luna/buffers.h"
#include "models/luna/heads.h"

namespace longview::models {

class LunaBatch final : public EncoderBatch {
 public:
  using Context = LunaContext;
  using Sequences = RaggedBatch::Sequences;

  // REQUIRES: sequences, context and scratch outlive the batch. `times` may be null.
  LunaBatch(const LunaContext& context, Sequences sequences, ScratchKeeper& scratch,
            EncoderTimes* times);

  // Exact bytes of scratch that a batch of these sequences borrows, panel results aside.
  static size_t ScratchBytes(const LunaContext& context, Sequences sequences);

  bool Advance() override;
  void Drop(int i) override { batch_.Drop(i); }
  const float* Rows(int i) const override;
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs) const override;

  // After the last layer: the active rows of P of sequence i, [count, d]. REQUIRES: not dropped.
  LunaProjectedRows Projected(int i) const;

 private:
  void LeaveDropped();
  void Embed();
  void EnterProjected();
  // input = norm(x) row by row, for layers that read normalised rows.
  void NormRows(float* x, std::byte* input, int64_t rows, const Norm& norm);
  void Pack(const LunaLayer& layer);
  void Unpack(const LunaLayer& layer);
  void UpdateProjected(const LunaLayer& layer);
  void KeepWanted();
  void FinishLayer(const LunaLayer& layer);
  void FinishModel();
  void RunAttention(const kernels::Plan& plan, const kernels::Call& call);

  bool last() const { return layer_ + 1 == config_.layers; }
  bool pre_norm() const { return config_.norms == NormPlace::kPre; }
  int64_t outputs() const { return last() ? plan_.wanted() : batch_.rows(); }

  const LunaContext context_;
  const LunaConfig& config_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;  // Of [d] in the compute type.
  const std::vector<float> zeros_;
  EncoderTimes* const times_;
  RaggedBatch batch_;
  LunaPlan plan_;
  ScratchLoan scratch_;
  LunaBuffers buffers_;
  int layer_ = 0;
};

}  // namespace longview::models
