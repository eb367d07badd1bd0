// Luna's encoder over a ragged batch: [tokens, d] and offsets, no padding.
// Definition: Ma et al. 2021, section 3, as the published code (fairseq-apollo) computes it.
// A layer, post-norm (pre-norm reads normalised x and p, and adds without a norm):
//
//   Y_P = softmax(p W_pq (x W_pk)^T) x W_pv          pack: l rows over all tokens
//   Y_X = softmax(x W_q (Y_P W_k)^T) Y_P W_v W_out   unpack: tokens over l rows
//   x   = LN(x + Y_X);  x = LN(x + FFN(x));  p = LN(p + Y_P)
//
// The residual streams x and p are fp32 in every compute type; with a 16-bit type the inputs of
// linears and of attention are rounded, sums, softmax and norms stay fp32.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/encoder/pass.h"
#include "models/luna/config.h"
#include "models/luna/plan.h"
#include "models/luna/weights.h"

namespace longview::models {

// Borrows all.
class LunaPass final : public EncoderPass {
 public:
  LunaPass(const LunaConfig& config, const LunaWeights& weights, Compute compute,
           Sequences sequences, int tile_rows);

  int layers() const override { return config_.layers; }
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;

  Rows Wanted() const override { return kept_.First(plan_.wanted()); }
  // The active rows of P, where heads read them.
  Rows Extra() const override;
  int64_t FirstWanted(int place) const override { return plan_.wanted_offsets[place]; }
  int64_t FirstExtra(int place) const override { return plan_.projected_offsets[place]; }
  int64_t ExtraRows(int place) const override {
    return plan_.projected_offsets[place + 1] - plan_.projected_offsets[place];
  }

  RaggedBatch& batch() override { return batch_; }
  void LeaveDropped(int layer) override;

 private:
  void Pack(Backend& backend, const LunaLayer& layer);
  void Unpack(Backend& backend, const LunaLayer& layer, bool last);
  void UpdateProjected(Backend& backend, int layer);
  void Finish(Backend& backend, int layer);

  bool pre_norm() const { return config_.norms == NormPlace::kPre; }
  bool last(int layer) const { return layer + 1 == config_.layers; }
  int64_t width() const { return config_.width; }
  // Tensors side by side that the pack and the unpack project tokens to.
  int64_t parts() const { return config_.tied_kv ? 2 : 3; }
  // Keys beside values in `rows`, or the same where they are tied.
  kernels::Source KeysAndValues(const Rows& rows, int heads) const;

  const LunaConfig& config_;
  const LunaWeights& weights_;
  const Compute compute_;
  const int tile_rows_;
  RaggedBatch batch_;
  LunaPlan plan_;
  // Per token and per row of P, as they are staged.
  std::vector<int32_t> ids_, places_, entering_;

  PlanRef pack_, unpack_, unpack_wanted_;
  IndexRef ids_ref_, places_ref_, entering_ref_, wanted_ref_;

  Rows x_;             // [tokens, d] residual stream.
  Rows input_;         // T [tokens, d] what a layer reads.
  Rows kept_;          // [wanted, d] x of the last layer.
  Rows kept_input_;    // T [wanted, d] of it.
  Rows p_;             // [projected rows, d] residual stream of P.
  Rows p_input_;       // T [projected rows, d]
  Rows projections_;   // T [tokens, 3d] query, pack key, pack value; tied [tokens, 2d].
  Rows queries_;       // T [wanted, d] of the last layer.
  Rows z_;             // T [tokens, d] unpacked context.
  Rows pack_queries_;  // T [projected rows, d]
  Rows packed_;        // T [projected rows, d]
  Rows unpack_keys_;   // T [projected rows, 2d]; tied [projected rows, d].
};

}  // namespace longview::models
