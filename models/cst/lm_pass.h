// The language model's forward over the next tokens of several sequences: prefill and decoding
// together.
//
// Definition: Lee et al. 2023, section 3.3, with the choices of config.h. Every token sees its
// slice up to itself, the e tokens before it, and Y_g of its slice: attention of the slice before
// it to all earlier ones; the first slice's is zero. A finished slice's embedding is summed token
// by token in fp32, whether it arrives whole or one token at a time, so that where prefill is cut,
// or a fork goes on, changes no bit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/cst/lm_layout.h"
#include "models/cst/pool_slices.h"
#include "models/cst/weights.h"
#include "models/generation/passes/strip_blocks.h"
#include "models/generation/passes/token_forward.h"
#include "models/generation/passes/token_model.h"
#include "models/ops/cache_rows.h"
#include "models/ops/states.h"

namespace longview::models {

class CstLmPass final : public TokenForward {
 public:
  // Borrows all. `logit_rows`: rows of logits at a time, at most.
  CstLmPass(const CstConfig& config, const CstWeights& weights, const TokenFrame& frame,
            std::vector<TokenRun> runs, int64_t logit_rows);

  std::span<const TokenRun> runs() const override { return layout_.runs; }
  int layers() const override { return config_.layers; }
  bool RepeatsEarlier(int layer) const override { return layer > 0; }

  absl::Status Append() override;
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;
  Rows Logits(Backend& backend, int64_t first, int64_t count) override;
  void End() override;

 private:
  struct Group {
    StripBlocks window, pages;
    PlanRef tokens, slices;
  };

  // Snapshots that sequences found in the cache go on with: their blocks are held until the end of
  // the step, which may give them away.
  void HoldSnapshots();
  void StageCache(Backend& backend);
  void StageStates(Backend& backend);
  StatesRef StageUses(Backend& backend, std::span<const CstStateUse> uses,
                      std::vector<kernels::StateRow>& rows) const;

  // Y_l of `from` to z.
  void AttendTokens(Backend& backend, const CstLayer& layer, const Rows& from);
  void AttendGroup(Backend& backend, const CstLayer& layer, int group) const;
  // Embeddings of the slices that end, their place among the pages, and their Y_g.
  void AttendSlices(Backend& backend, const CstLayer& layer, const Rows& from);
  // The slices' embeddings.
  Rows PoolSlices(Backend& backend, const CstLayer& layer, const Rows& from) const;
  // z = `from` + the Y_g of each row's slice.
  void AddSlices(Backend& backend, const Rows& from) const;
  void Finish(Backend& backend, int layer);

  bool pre_norm() const { return config_.norms == NormPlace::kPre; }
  bool pools_linearly() const { return config_.slice_pooling == CstPooling::kLinear; }
  bool projects_embeddings() const { return config_.embedding_width != config_.width; }
  int64_t width() const { return config_.width; }
  StripRef Strip(int strip) const { return {frame_.cache, strip, layer_, config_.heads}; }

  const CstConfig& config_;
  const CstWeights& weights_;
  const TokenFrame frame_;
  const int64_t logit_rows_;
  const CstLmLayout layout_;
  const kernels::CacheShape shape_;
  std::optional<kernels::CacheStep> step_;  // Set by Append.
  std::vector<kernels::CacheSequence> held_;
  int layer_ = 0;      // The layer that runs.
  int64_t shift_ = 0;  // Floats from the first layer's states to that layer's.

  // Lists in the form that Stage hands to the backend.
  std::array<Group, 3> groups_;
  std::vector<int32_t> wanted_, cutoffs_;
  std::vector<kernels::CachePlace> restored_, snapshots_;  // Per run; per slice that ends.
  std::vector<kernels::StateRow> sums_in_, sums_out_, globals_in_, globals_out_;
  std::vector<float*> logits_to_;  // [wanted]
  IndexRef ids_ref_, positions_ref_, kinds_ref_, entries_ref_, globals_ref_, pooled_places_ref_;
  IndexRef slice_entries_ref_, wanted_ref_, cutoffs_ref_;
  PartsRef parts_ref_;
  PlacesRef restored_ref_, snapshots_ref_;
  StatesRef sums_in_ref_, sums_out_ref_, globals_in_ref_, globals_out_ref_;

  // "T" is the compute type.
  Rows x_;             // [rows, D] residual stream.
  Rows input_;         // T [rows, D] what attention reads.
  Rows kept_;          // [wanted, D] x of the last layer.
  Rows kept_input_;    // T [wanted, D] of it.
  Rows embeddings_;    // [rows, D_e] those that are projected.
  Rows embedded_;      // T [rows, D_e] of them.
  Rows qkv_;           // T [rows, 3D]
  Rows z_;             // T [rows, D] attention's output.
  Rows kept_z_;        // T [wanted, D] of the last layer; then what logits are made of.
  Rows sums_;          // [parts, D] pooled.
  Rows slice_tokens_;  // T [slices that end, L D]; slice_pooling `linear`.
  Rows slice_input_;   // T [slices that end, D] embeddings.
  Rows slice_qkv_;     // T [slices that end, 3D]
  Rows globals_;       // T [slices that end + runs, D] Y_g; see CstLmLayout::globals.
  Rows logits_;        // [logit rows, V], where a device computes.
};

}  // namespace longview::models
