// Longformer's layer (Beltagy et al. 2020, section 3; HuggingFace LongformerModel, post-LayerNorm),
// over rows of whole documents or of a piece of one:
//
//   z = attention of every token to its window and the global tokens;
//       of global tokens, with projections of their own, to all tokens
//   x = LN(x + z W_o);   x = LN(x + FFN(x))
//
// The residual stream is fp32 in every compute type; with a 16-bit type the inputs of linears and
// of attention are rounded, sums, softmax and norms stay fp32.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/longformer/attend_folded.h"
#include "models/longformer/config.h"
#include "models/longformer/layer_plan.h"
#include "models/longformer/weights.h"
#include "models/ops/backend.h"

namespace longview::models {

// A piece's lists where they are staged.
struct StagedPiece {
  PlanRef band;
  IndexRef cut_globals, carried, folded_places, unfolded_places;
};

// A plan and where its lists are staged.
struct StagedLayer {
  StagedLayer() = default;
  explicit StagedLayer(LayerPlan plan) : host(std::move(plan)) {}

  LayerPlan host;
  std::vector<StagedPiece> pieces;  // One for each of host.pieces.
  PlanRef full;
  IndexRef local_rows, query_rows, out_rows, unfolded_rows;
  Folds folds;
  // The staged parts of the global rows.
  std::vector<int32_t> folded_row_list, folded_out_list, unfolded_row_list;
  std::vector<FoldGroup> fold_groups;
};

// `roles` are those of all rows of x.
void StageLayer(Backend& backend, std::span<const uint8_t> roles, StagedLayer& layer);

// "T" is the compute type.
struct LongformerRows {
  Rows x;               // [rows, H] residual stream.
  Rows input;           // T [rows, H], x rounded; x itself for fp32.
  Rows qkv;             // T [projected rows, 3H]
  Rows z;               // T [outputs, H] attention's output, of a piece.
  Rows folded_out;      // T [folded global rows, H] their attention.
  Rows global_inputs;   // T [global rows, H] that are not folded.
  Rows global_queries;  // T [the same, H]
  Rows global_out;      // T [the same, H] their attention.
  Rows global_keys;     // T [global key rows, 2H]
};

// Takes the last five of `rows` for any of the plans.
void TakeGlobalRows(Backend& backend, const LongformerConfig& config,
                    std::span<const StagedLayer* const> layers, LongformerRows& rows);

// The steps of one layer. Borrows all.
class LongformerLayerRun {
 public:
  LongformerLayerRun(const LongformerConfig& config, const LongformerLayer& weights,
                     Compute compute, const LongformerRows& rows)
      : config_(config), weights_(weights), compute_(compute), rows_(rows) {}

  // qkv = input Wqkv + bias, of rows of the same count.
  void Project(Backend& backend, const Rows& input, const Rows& qkv) const;
  // Global keys of `tokens` rows from `row0` on, to key rows from `key_row0` on.
  void ProjectGlobalKeys(Backend& backend, int64_t row0, int64_t tokens, int64_t key_row0) const;
  // z of a piece's rows that see a window. `queries` T [outputs, H].
  void AttendLocal(Backend& backend, const PlanRef& band, const Rows& queries) const;
  // Attention of global rows, those that are folded and the others: before any row of x changes.
  void AttendGlobal(Backend& backend, const StagedLayer& plan) const;
  // z of a piece's global rows.
  void PlaceGlobal(Backend& backend, const LayerPiece& piece, const StagedPiece& staged) const;
  // The rest after attention. `x` is the residual stream of z's rows, `input` takes the next input.
  void Finish(Backend& backend, const Rows& x, const Rows& input, const Rows& z) const;

 private:
  void AttendUnfolded(Backend& backend, const StagedLayer& plan) const;

  int64_t width() const { return config_.width; }

  const LongformerConfig& config_;
  const LongformerLayer& weights_;
  const Compute compute_;
  const LongformerRows& rows_;
};

}  // namespace longview::models
