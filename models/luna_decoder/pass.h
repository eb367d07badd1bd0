// A forward over the next tokens of several Luna sequences, prefill and decoding side by side. Sums
// over earlier tokens are in the sequences' states, so that a prompt may be cut anywhere without
// changing a bit.
//
//   a = causal attention(x);   x = LN(x + a W_out);   x = LN(x + FFN(x))
//
// (pre-norm: attention and FFN read LN(x), and add without a norm). A translation model attends to
// its sequences' documents (document_pass.h) between the two: x = LN(x + softmax(x W_q K^T) V
// W_out). The residual stream, the running sums and softmax are fp32 in every compute type; with a
// 16-bit one the inputs of linears are rounded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/span/plan.h"
#include "models/generation/passes/pass_document.h"
#include "models/generation/passes/token_model.h"
#include "models/luna_decoder/append_outer.h"
#include "models/luna_decoder/weights.h"
#include "models/ops/states.h"

namespace longview::models {

class LunaTokenPass final : public TokenForward {
 public:
  // Borrows config, weights and what `frame` points to. `logit_rows`: rows of logits at a time, at
  // most. Runs without a sequence are counted: each has the longest document.
  LunaTokenPass(const LunaDecoderConfig& config, const LunaDecoderWeights& weights,
                const TokenFrame& frame, std::vector<TokenRun> runs, int64_t logit_rows);

  std::span<const TokenRun> runs() const override { return runs_; }
  int layers() const override { return config_.layers; }
  bool RepeatsEarlier(int layer) const override { return layer > 0; }

  absl::Status Append() override;
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;
  Rows Logits(Backend& backend, int64_t first, int64_t count) override;
  void End() override { step_->End(); }

 private:
  void ListRows();
  // Every token over its document's packed rows.
  void PlanAcross();
  // Keys of the documents, one after the other.
  void ListKeys();
  void ListSums(int layer);

  void AttendAcross(Backend& backend, int layer);
  void Finish(Backend& backend, int layer);

  bool pre_norm() const { return config_.norms == NormPlace::kPre; }
  bool translates() const { return config_.encoder.has_value(); }
  int64_t width() const { return config_.width; }
  int64_t rows() const { return static_cast<int64_t>(ids_.size()); }

  const LunaDecoderConfig& config_;
  const LunaDecoderWeights& weights_;
  const TokenFrame frame_;
  const int64_t logit_rows_;
  std::vector<TokenRun> runs_;  // Sorted by group.
  kernels::Plan across_;
  struct Source {
    const PassDocument* document;  // Null: it is counted, or there is none.
    int rows;                      // Active rows of P.
  };
  std::vector<Source> over_;                // By run.
  std::vector<Source> documents_;           // Distinct, in the order of their keys.
  int64_t key_rows_ = 0;                    // Rows of all documents.
  std::optional<kernels::CacheStep> step_;  // Set by Append.

  // Staged lists.
  std::vector<int32_t> ids_, places_, wanted_;
  std::vector<std::vector<kernels::OuterSequence>> sums_;  // By layer.
  std::vector<kernels::StateRow> keys_at_;
  std::vector<float*> logits_to_;  // [wanted]
  IndexRef ids_ref_, places_ref_, wanted_ref_;
  std::vector<OuterRef> sums_ref_;
  StatesRef keys_ref_;
  PlanRef across_ref_;

  // "T" is the compute type.
  Rows x_;            // [rows, d] residual stream.
  Rows input_;        // T [rows, d]; fp32 post-norm: x.
  Rows kept_;         // [wanted, d] x of the last layer.
  Rows kept_input_;   // T [wanted, d] of it, then what logits are made of.
  Rows projections_;  // [rows, parts d]
  Rows attended_;     // [rows, d] of causal attention; fp32: z.
  Rows z_;            // T [rows, d]
  Rows kept_z_;       // T [wanted, d] of the last layer.
  Rows queries_;      // T [rows, d] across.
  Rows keys_;         // T [document rows, 2d] of one layer; tied [document rows, d].
  Rows logits_;       // [logit rows, V], where a device computes.
};

}  // namespace longview::models
