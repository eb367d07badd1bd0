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
// The residual stream is fp32 in every compute type; with a 16-bit type the inputs of linears and
// of attention are rounded, sums, softmax and norms stay fp32.
#pragma once

#include <cstdint>
#include <vector>

#include "models/cst/config.h"
#include "models/cst/plan.h"
#include "models/cst/pool_slices.h"
#include "models/cst/weights.h"
#include "models/encoder/pass.h"

namespace longview::models {

// Borrows all.
class CstPass final : public EncoderPass {
 public:
  CstPass(const CstConfig& config, const CstWeights& weights, Compute compute, Sequences sequences,
          int tile_rows);

  int layers() const override { return config_.layers; }
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;

  Rows Wanted() const override { return kept_.First(wanted()); }
  int64_t FirstWanted(int place) const override { return wanted_offsets_[place]; }

  RaggedBatch& batch() override { return batch_; }
  void LeaveDropped(int layer) override;

 private:
  void MakePlan();
  void ListRows();

  // Y_g and Y_l to z, in the model's order.
  void Attend(Backend& backend, const CstLayer& layer);
  // Y_l of `from` [rows, D] to z. `from` may be z.
  void MixTokens(Backend& backend, const CstLayer& layer, const Rows& from);
  // S of `from`, and Y_g.
  void AttendSlices(Backend& backend, const CstLayer& layer, const Rows& from);
  void Finish(Backend& backend, int layer);

  // Attention of rows of [3D] to rows of [3D].
  kernels::Call HeadsCallOf(const Rows& qkv, const Rows& out) const;
  kernels::Source HeadsSourceOf(const Rows& qkv) const;

  bool pre_norm() const { return config_.norms == NormPlace::kPre; }
  bool attends() const { return config_.mixer_size == 0; }
  bool pools_linearly() const { return config_.slice_pooling == CstPooling::kLinear; }
  bool projects_embeddings() const { return config_.embedding_width != config_.width; }
  int64_t width() const { return config_.width; }
  int64_t rows() const { return batch_.rows(); }
  int64_t slices() const { return plan_.slice_rows(); }
  int64_t wanted() const { return wanted_offsets_.back(); }

  const CstConfig& config_;
  const CstWeights& weights_;
  const Compute compute_;
  const int tile_rows_;
  RaggedBatch batch_;
  CstPlan plan_;
  std::vector<int64_t> wanted_offsets_;

  // Staged lists, one entry per row; slice_entries_: per slice.
  std::vector<int32_t> ids_, places_, kinds_, token_entries_, wanted_rows_;
  std::vector<int32_t> slice_entries_;
  // slice_pooling `linear`. pooled_places_: place of each row among slices of L, -1: masked or
  // padding. pool_entries_: per slice, -1: no visible row.
  std::vector<int32_t> pooled_places_, pool_entries_;
  PlanRef token_plan_, slice_plan_;
  IndexRef ids_ref_, places_ref_, kinds_ref_, token_entries_ref_, wanted_ref_, slice_of_row_ref_;
  IndexRef slice_entries_ref_, pooled_places_ref_, pool_entries_ref_;
  SlicesRef slices_ref_;

  Rows x_;             // [rows, D] residual stream.
  Rows input_;         // T [rows, D] what attention reads.
  Rows kept_;          // [wanted, D] x of the last layer.
  Rows kept_input_;    // T [wanted, D] of it.
  Rows sums_;          // [rows, D_e] embeddings that are projected.
  Rows embedded_;      // T [rows, D_e] of them.
  Rows qkv_;           // T [rows, 3D]
  Rows z_;             // T [rows, D] attention's output.
  Rows kept_z_;        // T [wanted, D] of the last layer.
  Rows slice_input_;   // T [slices, D] slice embeddings.
  Rows slice_tokens_;  // T [slices, L D]; slice_pooling `linear`.
  Rows slice_qkv_;     // T [slices, 3D]
  Rows slice_z_;       // T [slices, D]
};

}  // namespace longview::models
