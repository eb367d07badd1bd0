// The bidirectional Transformer-LS encoder over a ragged batch: [tokens, d] and offsets, no
// padding. Definition: Zhu et al. 2021, sections 3.2 to 3.4, as the published `lra/` code computes
// it (pre-LayerNorm layers, two-stage DualLN). A layer, y = LN1(x):
//
//   q, k, v = y W;   k, v = LN_l(k), LN_l(v)            all heads together
//   K', V'  = LN_s(sum over t of softmax_t(y W_p) k, v)  r projected keys per head and document
//   z       = softmax over [K' | window of k]
//   x       = x + z W_o;   x = x + MLP(LN2(x))
//
// A class vector c is one more projected key, LN_s(c W); its own row attends to c W, unnormalised,
// and to the outputs z of the document's tokens.
//
// The residual stream is fp32 in both compute types; with bf16 the inputs of linears and of
// attention are rounded, sums, softmax and norms stay fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "models/dense/scratch_keeper.h"
#include "models/encoder/family.h"
#include "models/encoder/ragged_batch.h"
#include "models/encoder/residual_rows.h"
#include "models/transformer_ls_text/buffers.h"

namespace longview::models {

class LsTextBatch final : public EncoderBatch {
 public:
  using Context = LsTextContext;
  using Sequences = RaggedBatch::Sequences;

  // REQUIRES: sequences, context and scratch outlive the batch. `times` may be null.
  LsTextBatch(const LsTextContext& context, Sequences sequences, ScratchKeeper& scratch,
              EncoderTimes* times);

  // Exact bytes of scratch that a batch of these sequences borrows, panel results aside.
  static size_t ScratchBytes(const LsTextContext& context, Sequences sequences);

  bool Advance() override;
  void Drop(int i) override { batch_.Drop(i); }
  const float* Rows(int i) const override;
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs) const override;

  // After the last layer: the class vector of sequence i, [d]. REQUIRES: the model has one.
  const float* ClassRow(int i) const;

 private:
  using Plans = std::map<bool, LsTextPlan>;  // By has_class.

  static Plans MakePlans(const LsTextContext& context, const RaggedBatch& batch);
  static LsTextSizes SizesOf(const LsTextContext& context, const Plans& plans,
                             const RaggedBatch& batch);
  void LeaveDropped();

  void Embed();
  void EmbedClassRows();
  void NormTokens(const Norm& norm);
  void ReadClassRows(const Norm& norm);
  void Project(const LsTextLayer& layer, const LsTextPlan& plan);
  void PoolLandmarks(const LsTextLayer& layer, const LsTextPlan& plan);
  void PlaceLandmark(const LsTextLayer& layer, const LsTextPlan& plan, int64_t row, float* scratch);
  void Attend(const LsTextPlan& plan);
  int64_t KeepWanted(const LsTextPlan& plan);
  void FinishLayer(const LsTextLayer& layer, int64_t rows);

  ResidualRows RowsBeside(std::byte* rows) const { return {buffers_.x, rows, width_, row_bytes_}; }
  std::byte* Input(int64_t row) { return buffers_.input + row * row_bytes_; }
  bool has_class_now() const { return config_.HasClass(layer_); }

  const LsTextContext context_;
  const LsTextConfig& config_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;  // Of [d] in the compute type.
  const std::vector<float> zeros_;
  EncoderTimes* const times_;
  RaggedBatch batch_;
  Plans plans_;
  ScratchLoan scratch_;
  LsTextBuffers buffers_;
  int layer_ = 0;
  std::vector<int64_t> first_row_;  // After the last layer: of each sequence's wanted rows.
  int64_t class_row0_ = 0;
};

}  // namespace longview::models
