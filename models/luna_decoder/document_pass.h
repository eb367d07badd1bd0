// A document of a translation model as a forward: through the encoder, then what every decoder
// layer makes of it once. Per layer, from the rows P of the layer before (the encoder's last at
// first) and the encoder's last states X:
//
//   write rows  p W_pq                     of the causal attention (kernels/linear_attention)
//   keys        pack(p, X) W_k, W_v        of the attention across, one per row of P
//   p           LN(p + pack(p, X))         for the next layer (pre-norm: LN(p) is packed, p added)
//
// None of it depends on the output, so that a token costs the same however long the document is.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/span/plan.h"
#include "models/encoder/pass.h"
#include "models/generation/passes/token_model.h"
#include "models/luna/pass.h"
#include "models/luna_decoder/memory.h"
#include "models/luna_decoder/weights.h"
#include "models/ops/states.h"

namespace longview::models {

class LunaDocumentPass final : public EncoderPass {
 public:
  // Implements SourceModel::Forward. Borrows config and weights, `encoder` the encoder's. Null
  // memory: the pass is counted.
  LunaDocumentPass(const LunaDecoderConfig& config, const LunaDecoderWeights& weights,
                   const LunaWeights& encoder, const TokenFrame& frame, Sequences document,
                   const LunaDocumentMemory& memory, bool brings_states);

  int layers() const override { return encoder_.layers() + config_.layers; }
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override { encoder_.Embed(backend); }
  void Layer(Backend& backend, int layer) override;

  Rows Wanted() const override { return brings_states_ ? encoder_.Wanted() : Rows(); }
  int64_t FirstWanted(int place) const override { return encoder_.FirstWanted(place); }

  RaggedBatch& batch() override { return encoder_.batch(); }
  void LeaveDropped(int layer) override { encoder_.LeaveDropped(layer); }

 private:
  void Prepare(Backend& backend, int layer);
  void Pack(Backend& backend, const LunaCross& cross, const Rows& p);

  bool pre_norm() const { return config_.norms == NormPlace::kPre; }
  int64_t width() const { return config_.width; }

  const LunaDecoderConfig& config_;
  const LunaDecoderWeights& weights_;
  const LunaDocumentMemory memory_;
  const bool brings_states_;
  LunaPass encoder_;
  const int64_t tokens_;
  const int64_t rows_;  // Active rows of P.
  kernels::Plan pack_;  // Active rows over the document's visible tokens.
  std::vector<kernels::StateRow> keys_at_;
  PlanRef pack_ref_;
  StatesRef keys_ref_;

  Rows source_;   // T [tokens, d] the encoder's last states.
  Rows p_raw_;    // T [rows, d] of P.
  Rows p_input_;  // T [rows, d] what is packed with; post-norm: p_raw.
  Rows written_;  // [rows, d] of pq_proj.
  Rows queries_;  // T [rows, d]
  Rows tensors_;  // T [tokens, 2d] keys and values that are packed; tied [tokens, d].
  Rows packed_;   // T [rows, d]
  Rows keys_;     // T [rows, 2d] of the attention across; tied [rows, d].
};

}  // namespace longview::models
